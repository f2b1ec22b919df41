# The part of redis-py's interface that the printed recipes use, over a Unix socket. Not part of any recipe.
import os, random, signal, socket, sys, threading, time, uuid


class Redis:
    def __init__(self, path):
        self.path = path
        self.local = threading.local()

    def call(self, *words):
        if not hasattr(self.local, "file"):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.path)
            self.local.file = connection.makefile("rwb")
        file = self.local.file
        words = [str(word).encode() for word in words]
        file.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        file.flush()
        return self.answer(file)

    def answer(self, file):
        line = file.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else file.read(int(rest) + 2)[:-2]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        raise Exception(line.decode())

    def setnx(self, key, value):
        return bool(self.call("SETNX", key, value))

    def expire(self, key, seconds):
        return bool(self.call("EXPIRE", key, seconds))

    def set(self, key, value, nx=False, ex=None):
        answer = self.call("SET", key, value, *(["NX"] if nx else []), *(["EX", ex] if ex else []))
        return True if answer == b"OK" else None

    def setex(self, key, seconds, value):
        return self.call("SETEX", key, seconds, value)

    def get(self, key):
        return self.call("GET", key)

    def exists(self, key):
        return self.call("EXISTS", key)

    def delete(self, key):
        return self.call("DEL", key)

    def eval(self, script, keys, *words):
        return self.call("EVAL", script, keys, *words)


def wait_for(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise Exception("timed out")


clients = [Redis(path) for path in sys.argv[1:]]
redis_client = clients[0]
