//! Work under a lock that can be lost.

use std::pin::pin;
use std::task::Poll;

/// Polls the work while the lock is held, and drops it midway otherwise. `check` reads the clock before each step, so that a
/// process that was suspended does nothing more; `lost` wakes it when the lock is lost.
pub(crate) async fn run<F: Future, L>(
    work: F,
    check: impl Fn() -> Result<(), L>,
    lost: impl Future<Output = L>,
) -> Result<F::Output, L> {
    let (mut lost, mut work) = (pin!(lost), pin!(work));
    std::future::poll_fn(|context| {
        if let Err(loss) = check() {
            return Poll::Ready(Err(loss));
        }
        if let Poll::Ready(loss) = lost.as_mut().poll(context) {
            return Poll::Ready(Err(loss));
        }
        work.as_mut().poll(context).map(Ok)
    })
    .await
}
