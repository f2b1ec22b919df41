use std::time::Duration;

use redis::aio::{PubSub, PubSubStream};

use super::stream::Stream;
use super::url::RedisUrl;

/// Subscribes to a channel, over a connection of its own, which closes with the messages. `None` if that fails or takes
/// longer than `timeout`.
pub(crate) async fn listen(server: &RedisUrl, timeout: Duration, channel: &str) -> Option<PubSubStream> {
    let subscribing = async {
        let stream = Stream::dial(&server.info, &server.tls).await.ok()?;
        let mut listener = PubSub::new(server.info.redis_settings(), stream).await.ok()?;
        listener.subscribe(channel).await.ok()?;
        Some(listener.into_on_message())
    };
    tokio::time::timeout(timeout, subscribing).await.ok().flatten()
}
