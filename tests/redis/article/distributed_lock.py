import redis
import time
import uuid
import threading

class DistributedLock:
    def __init__(self, redis_client, key, timeout=10, retry_interval=0.1):
        self.redis_client = redis_client
        self.key = f"lock:{key}"
        self.timeout = timeout
        self.retry_interval = retry_interval
        self.identifier = str(uuid.uuid4())
        self.lock_thread = None
        self.stop_renewal = False

    def acquire(self, blocking=True, timeout=None):
        """获取锁"""
        if timeout is None:
            timeout = self.timeout

        end_time = time.time() + timeout

        while True:
            # 尝试获取锁
            if self.redis_client.set(
                self.key,
                self.identifier,
                nx=True,
                ex=self.timeout
            ):
                # 启动续期线程
                self.start_renewal()
                return True

            if not blocking:
                return False

            if time.time() >= end_time:
                return False

            time.sleep(self.retry_interval)

    def release(self):
        """释放锁"""
        self.stop_renewal = True

        lua_script = """
        if redis.call("get", KEYS[1]) == ARGV[1] then
            return redis.call("del", KEYS[1])
        else
            return 0
        end
        """

        return self.redis_client.eval(
            lua_script,
            1,
            self.key,
            self.identifier
        )

    def start_renewal(self):
        """启动锁续期线程"""
        def renew():
            while not self.stop_renewal:
                time.sleep(self.timeout / 3)  # 在过期前1/3时间续期

                if self.stop_renewal:
                    break

                lua_script = """
                if redis.call("get", KEYS[1]) == ARGV[1] then
                    return redis.call("expire", KEYS[1], ARGV[2])
                else
                    return 0
                end
                """

                try:
                    self.redis_client.eval(
                        lua_script,
                        1,
                        self.key,
                        self.identifier,
                        self.timeout
                    )
                except Exception as e:
                    print(f"续期失败: {e}")
                    break

        self.lock_thread = threading.Thread(target=renew, daemon=True)
        self.lock_thread.start()

    def __enter__(self):
        if self.acquire():
            return self
        raise Exception("获取锁失败")

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.release()
