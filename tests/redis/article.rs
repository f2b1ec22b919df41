//! Mistakes of the printed recipes, shown on the printed text itself: Python runs it unchanged against real servers.
//! `client.py` replaces redis-py; everything else in `article/` is as printed.

use std::io::Write;
use std::process::{Command, Stdio};

use locktop::demo::redis::RedisServer;
use locktop::locks::redis_lock::{LockOptions, RedisLocks, Restarts};
use locktop::model::redis_lease::{Expiry, Standing};
use locktop::redis::{RedisOptions, Reply, read_once};

use crate::{open, run, server, servers, url, urls};

const CLIENT: &str = include_str!("article/client.py");
const SETNX: &str = include_str!("article/setnx.py");
const SET_NX_EX: &str = include_str!("article/set_nx_ex.py");
const REDLOCK: &str = include_str!("article/redlock.py");
const DISTRIBUTED_LOCK: &str = include_str!("article/distributed_lock.py");
const USES: &str = include_str!("article/uses.py");

/// Runs a printed recipe and then a scenario that uses it; returns the lines that the scenario printed. The
/// `redis` module that a recipe imports is empty: the recipes need nothing from it.
async fn python(servers: &[RedisServer], recipe: &str, scenario: &str) -> Vec<String> {
    let program = format!(
        "import sys, types\nsys.modules['redis'] = types.ModuleType('redis')\n{CLIENT}\n{recipe}\n{scenario}\n"
    );
    let sockets: Vec<_> = servers.iter().map(RedisServer::socket).collect();
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new("python3");
        command.args(["-I", "-"]).args(sockets).env("PYTHONIOENCODING", "utf-8");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!(
                "the printed recipes are Python, and python3 does not run ({error}): apt-get install python3"
            )
        });
        child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    });
    let output = output.await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{errors}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

async fn alone(server: &RedisServer, recipe: &str, scenario: &str) -> Vec<String> {
    python(std::slice::from_ref(server), recipe, scenario).await
}

#[tokio::test]
async fn setnx_and_expire_leave_a_key_forever_when_the_process_dies_in_between() {
    let server = server().await;
    let dies = "
def die(key, seconds):
    os.kill(os.getpid(), signal.SIGKILL)
redis_client.expire = die
RedisLock(redis_client, 'lock:a').acquire()
print('not reached')";
    assert_eq!(alone(&server, SETNX, dies).await, [""; 0]);
    let row = read_once(vec![url(&server)], RedisOptions::default()).await.leases.rows[0].clone();
    assert!(row.leaks());
    assert_eq!((row.expiry, row.standing), (Expiry::Never, Standing::Held));
    // No client can acquire it again, however long it waits.
    let next = "print(RedisLock(redis_client, 'lock:a', timeout=1).acquire())";
    assert_eq!(alone(&server, SETNX, next).await, ["False"]);
    // RedisLocks sets both at once: there is no state in between, and its lock is no leak.
    let options = LockOptions::default().restarts(Restarts::Trusted);
    let guard =
        RedisLocks::new(vec![url(&server)], options).unwrap().try_acquire("lock:b").await.unwrap().unwrap();
    let rows = read_once(vec![url(&server)], RedisOptions::default()).await.leases.rows.clone();
    assert!(!rows.iter().find(|row| &*row.name() == "lock:b").unwrap().leaks());
    guard.release().await;
}

#[tokio::test]
async fn a_release_that_does_not_compare_deletes_another_s_lock() {
    let scenario = "
one, other = RedisLock(redis_client, 'lock:a', timeout=1), RedisLock(redis_client, 'lock:a', timeout=60)
print(one.acquire())
wait_for(lambda: not redis_client.exists('lock:a'))
print(other.acquire())
one.release()
print(redis_client.exists('lock:a'))";
    assert_eq!(alone(&server().await, SETNX, scenario).await, ["True", "True", "0"]);
}

#[tokio::test]
async fn an_identifier_per_object_does_not_distinguish_two_acquisitions() {
    let scenario = "
lock = RedisLock(redis_client, 'lock:a', timeout=1)
print(lock.acquire())
wait_for(lambda: not redis_client.exists('lock:a'))
print(lock.acquire())
# The first of the two threads ends, and deletes the key of the second one.
print(lock.release(), redis_client.exists('lock:a'))";
    assert_eq!(alone(&server().await, SET_NX_EX, scenario).await, ["True", "True", "1 0"]);
}

#[tokio::test]
async fn without_renewal_two_clients_hold_the_lock_unnoticed() {
    let scenario = "
one, other = RedisLock(redis_client, 'lock:a', timeout=1), RedisLock(redis_client, 'lock:a', timeout=60)
print(one.acquire())
wait_for(lambda: not redis_client.exists('lock:a'))
print(other.acquire())
# Only the release, after all the work, shows that the holder was not alone.
print(one.release())";
    assert_eq!(alone(&server().await, SET_NX_EX, scenario).await, ["True", "True", "0"]);
}

#[tokio::test]
async fn the_printed_redlock_does_not_run_unchanged() {
    let scenario = "
scope = {}
exec(printed, scope)
try:
    scope['Redlock'](clients, 'lock:a')
except NameError as error:
    print(error)";
    let printed = format!("printed = {REDLOCK:?}");
    let output = python(&servers(3).await, &printed, scenario).await;
    assert_eq!(output, ["name 'uuid' is not defined"]);
}

#[tokio::test]
async fn a_failed_attempt_at_the_printed_redlock_deletes_the_holders_keys() {
    let servers = servers(5).await;
    let scenario = "
holder, other = Redlock(clients, 'lock:a', timeout=60), Redlock(clients, 'lock:a', timeout=60)
print(holder.acquire())
# Its first attempt deletes the keys of the holder, its second one finds them free.
print(other.acquire())
print(sum(client.get('lock:a') == holder.identifier.encode() for client in clients))";
    assert_eq!(python(&servers, REDLOCK, scenario).await, ["True", "True", "0"]);
    // The same with RedisLocks as the second client.
    for server in &servers {
        run(&open(server).await, "SET lock:b holder PX 60000").await;
    }
    let locks = RedisLocks::new(urls(&servers), LockOptions::default().restarts(Restarts::Trusted)).unwrap();
    assert!(locks.try_acquire("lock:b").await.unwrap().is_none());
    for server in &servers {
        assert_eq!(run(&open(server).await, "EXISTS lock:b").await, Reply::Number(1));
    }
}

#[tokio::test]
async fn the_printed_redlock_holds_expired_keys_if_the_clock_is_set_back() {
    let scenario = "
lock = Redlock(clients, 'lock:a', timeout=1)
# The last server answers when the others' keys have expired, and meanwhile the clock is set back.
slow = clients[4]
def set_late(*words, **more):
    wait_for(lambda: not any(client.exists('lock:a') for client in clients[:4]))
    return Redis.set(slow, *words, **more)
slow.set = set_late
time.time = lambda: 1000.0
print(lock.acquire(), sum(client.exists('lock:a') for client in clients))";
    assert_eq!(python(&servers(5).await, REDLOCK, scenario).await, ["True 1"]);
}

#[tokio::test]
async fn a_lock_object_that_is_used_again_is_not_renewed() {
    let scenario = "
lock = DistributedLock(redis_client, 'a', timeout=1)
print(lock.acquire())
lock.release()
print(lock.acquire())
wait_for(lambda: not redis_client.exists('lock:a'))
print('expired while held')";
    let output = alone(&server().await, DISTRIBUTED_LOCK, scenario).await;
    assert_eq!(output, ["True", "True", "expired while held"]);
}

#[tokio::test]
async fn one_failed_renewal_ends_all_renewals_and_the_holder_is_not_informed() {
    let scenario = "
calls = []
def fail(*words):
    calls.append(words)
    raise Exception('the connection was lost for a moment')
redis_client.eval = fail
lock = DistributedLock(redis_client, 'a', timeout=1)
print(lock.acquire())
wait_for(lambda: not redis_client.exists('lock:a'))
lock.lock_thread.join()
print(len(calls), lock.stop_renewal)";
    let output = alone(&server().await, DISTRIBUTED_LOCK, scenario).await;
    assert_eq!(output, ["True", "续期失败: the connection was lost for a moment", "1 False"]);
}

#[tokio::test]
async fn renewal_continues_in_vain_after_another_client_got_the_lock() {
    let scenario = "
answers = []
def ask(*words):
    answers.append(Redis.eval(redis_client, *words))
    return answers[-1]
redis_client.eval = ask
lock = DistributedLock(redis_client, 'a', timeout=1)
print(lock.acquire())
redis_client.set('lock:a', 'somebody-else', ex=60)
wait_for(lambda: answers.count(0) >= 2)
print(lock.lock_thread.is_alive(), lock.stop_renewal)
lock.stop_renewal = True";
    let output = alone(&server().await, DISTRIBUTED_LOCK, scenario).await;
    assert_eq!(output, ["True", "True False"]);
}

#[tokio::test]
async fn it_is_not_reentrant_though_that_is_asked_of_every_lock() {
    let scenario = "
lock = DistributedLock(redis_client, 'a')
print(lock.acquire(), lock.acquire(blocking=False))
lock.release()";
    assert_eq!(alone(&server().await, DISTRIBUTED_LOCK, scenario).await, ["True False"]);
}

/// Functions that the recipes call and the article does not print.
const AROUND: &str = "
orders, status, resource, ran = [], {}, {}, []
def create_order(data):
    orders.append(data)
    return len(orders)
get_resource_status = lambda id: 'occupied' if id in resource else 'available'
occupy_resource = lambda id, user: resource.__setitem__(id, user)
release_resource = lambda id: resource.pop(id, None)
process_resource = lambda id: 'done'
get_task_status = status.get
set_task_status = status.__setitem__
execute_task = ran.append
def attempt(work, *words):
    try:
        return work(*words)
    except Exception as error:
        return str(error)
";

async fn use_it(scenario: &str) -> Vec<String> {
    let recipe = format!("{DISTRIBUTED_LOCK}\n{USES}\n{AROUND}");
    alone(&server().await, &recipe, scenario).await
}

#[tokio::test]
async fn an_order_is_submitted_twice_when_its_mark_is_not_written() {
    let scenario = "
def lost(*words):
    raise Exception('the connection was lost')
redis_client.setex = lost
print(attempt(prevent_duplicate_submit, 7, 'order'))
del redis_client.setex
print(attempt(prevent_duplicate_submit, 7, 'order'), len(orders))";
    assert_eq!(use_it(scenario).await, ["the connection was lost", "2 2"]);
}

#[tokio::test]
async fn another_order_of_the_same_user_is_refused() {
    let scenario = "
print(attempt(prevent_duplicate_submit, 7, 'books'))
print(attempt(prevent_duplicate_submit, 7, 'flowers'))";
    assert_eq!(use_it(scenario).await, ["1", "订单已提交"]);
}

#[tokio::test]
async fn an_attempt_on_an_occupied_resource_releases_it() {
    let scenario = "
resource['printer'] = 'somebody'
print(attempt(access_resource, 'printer', 'me'), resource)";
    assert_eq!(use_it(scenario).await, ["资源不可用 {}"]);
}

#[tokio::test]
async fn a_task_runs_again_on_each_later_node() {
    let scenario = "
schedule_task(1)
schedule_task(1)
print(ran, status)";
    assert_eq!(use_it(scenario).await, ["[1, 1] {1: 'completed'}"]);
}

#[tokio::test]
async fn a_task_whose_runner_died_never_runs_again() {
    let scenario = "
# The state left by a runner that was killed in mid-task, once its lock has expired.
status[1] = 'running'
schedule_task(1)
print(ran, status)";
    assert_eq!(use_it(scenario).await, ["[] {1: 'running'}"]);
}
