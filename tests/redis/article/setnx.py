import redis
import time
import uuid

class RedisLock:
    def __init__(self, redis_client, key, timeout=10):
        self.redis_client = redis_client
        self.key = key
        self.timeout = timeout
        self.identifier = str(uuid.uuid4())

    def acquire(self):
        """获取锁"""
        end_time = time.time() + self.timeout

        while time.time() < end_time:
            if self.redis_client.setnx(self.key, self.identifier):
                # 设置过期时间
                self.redis_client.expire(self.key, self.timeout)
                return True
            time.sleep(0.001)

        return False

    def release(self):
        """释放锁"""
        # 问题：可能释放其他进程的锁
        self.redis_client.delete(self.key)
