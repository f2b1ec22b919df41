def prevent_duplicate_submit(user_id, order_data):
    lock_key = f"submit_lock:{user_id}"
    lock = DistributedLock(redis_client, lock_key, timeout=5)

    if not lock.acquire(blocking=False):
        raise Exception("请勿重复提交")

    try:
        # 检查是否已提交
        if redis_client.exists(f"order:{user_id}"):
            raise Exception("订单已提交")

        # 创建订单
        order_id = create_order(order_data)
        redis_client.setex(f"order:{user_id}", 60, order_id)

        return order_id
    finally:
        lock.release()


def access_resource(resource_id, user_id):
    lock_key = f"resource_lock:{resource_id}"
    lock = DistributedLock(redis_client, lock_key, timeout=30)

    if lock.acquire(timeout=10):
        try:
            # 检查资源状态
            status = get_resource_status(resource_id)
            if status != "available":
                raise Exception("资源不可用")

            # 占用资源
            occupy_resource(resource_id, user_id)

            # 执行操作
            return process_resource(resource_id)
        finally:
            release_resource(resource_id)
            lock.release()
    else:
        raise Exception("获取资源锁失败")


def schedule_task(task_id):
    lock_key = f"task_lock:{task_id}"
    lock = DistributedLock(redis_client, lock_key, timeout=300)

    if lock.acquire(blocking=False):
        try:
            # 检查任务状态
            task_status = get_task_status(task_id)
            if task_status == "running":
                return

            # 标记任务为运行中
            set_task_status(task_id, "running")

            # 执行任务
            execute_task(task_id)

            # 标记任务为完成
            set_task_status(task_id, "completed")
        except Exception as e:
            set_task_status(task_id, "failed")
            raise
        finally:
            lock.release()
    else:
        print(f"任务 {task_id} 正在其他节点执行")
