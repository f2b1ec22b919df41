import time
import random

class Redlock:
    def __init__(self, redis_clients, key, timeout=10, retry_delay=0.2):
        self.redis_clients = redis_clients
        self.key = key
        self.timeout = timeout
        self.retry_delay = retry_delay
        self.identifier = str(uuid.uuid4())
        self.quorum = len(redis_clients) // 2 + 1

    def acquire(self):
        """获取锁"""
        start_time = time.time()

        for attempt in range(self.timeout * 5):  # 最多重试timeout*5次
            acquired = 0
            start_acquire = time.time()

            # 尝试在所有Redis实例上获取锁
            for redis_client in self.redis_clients:
                try:
                    if redis_client.set(
                        self.key,
                        self.identifier,
                        nx=True,
                        ex=self.timeout
                    ):
                        acquired += 1
                except Exception as e:
                    print(f"Redis错误: {e}")

            # 计算获取锁的时间
            acquire_time = (time.time() - start_acquire) * 1000  # 毫秒

            # 检查是否获得大多数锁，且获取时间小于锁超时时间
            if acquired >= self.quorum and acquire_time < self.timeout * 1000:
                # 重新设置过期时间，减去获取锁的时间
                validity_time = self.timeout - (acquire_time / 1000)
                if validity_time > 0:
                    return True

            # 释放已获取的锁
            for redis_client in self.redis_clients:
                try:
                    redis_client.delete(self.key)
                except:
                    pass

            # 随机延迟后重试
            time.sleep(self.retry_delay + random.uniform(0, 0.01))

        return False

    def release(self):
        """释放锁"""
        lua_script = """
        if redis.call("get", KEYS[1]) == ARGV[1] then
            return redis.call("del", KEYS[1])
        else
            return 0
        end
        """

        released = 0
        for redis_client in self.redis_clients:
            try:
                if redis_client.eval(lua_script, 1, self.key, self.identifier):
                    released += 1
            except:
                pass

        return released >= self.quorum
