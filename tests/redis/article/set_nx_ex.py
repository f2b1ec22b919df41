class RedisLock:
    def __init__(self, redis_client, key, timeout=10):
        self.redis_client = redis_client
        self.key = key
        self.timeout = timeout
        self.identifier = str(uuid.uuid4())

    def acquire(self):
        """获取锁（原子操作）"""
        result = self.redis_client.set(
            self.key,
            self.identifier,
            nx=True,  # 只在key不存在时设置
            ex=self.timeout  # 设置过期时间
        )
        return result is True

    def release(self):
        """释放锁（Lua脚本保证原子性）"""
        lua_script = """
        if redis.call("get", KEYS[1]) == ARGV[1] then
            return redis.call("del", KEYS[1])
        else
            return 0
        end
        """
        return self.redis_client.eval(lua_script, 1, self.key, self.identifier)
