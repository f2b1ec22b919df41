use crate::model::Timestamp;
use crate::model::wait_graph::WaitGraph;
use crate::text::duration;

/// Sessions that already waited at the first poll. The sums do not include the time before that poll.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Before {
    /// The number of sessions; parallel workers count as one with their leader.
    pub sessions: u32,
    /// The longest wait until then, in seconds. None if the server does not report the start.
    pub longest: Option<f64>,
    /// The sum of their known waits until then, in seconds.
    pub seconds: f64,
}

impl Before {
    pub fn of(graph: &WaitGraph, at: Timestamp) -> Self {
        let starts = graph.tree.nodes.iter().filter_map(|node| {
            let (queue, place) = node.waits?;
            graph.queues.get(queue)?.waiters.get(place)?.wait_start
        });
        let waited = starts.map(|start| (at - start).as_seconds_f64().max(0.0));
        waited.fold(Self { sessions: graph.waiting, ..Self::default() }, |all, seconds| Self {
            longest: Some(all.longest.map_or(seconds, |longest| longest.max(seconds))),
            seconds: all.seconds + seconds,
            ..all
        })
    }

    /// `12 sessions were already waiting at the first snapshot, the longest for 4m10s; not included in the sum`. None if no
    /// session was.
    pub fn words(&self) -> Option<String> {
        let sessions = match self.sessions {
            0 => return None,
            1 => "1 session".to_owned(),
            many => format!("{many} sessions"),
        };
        Some(match self.longest {
            Some(longest) if self.sessions == 1 => {
                format!(
                    "{sessions} was already waiting at the first snapshot, for {}; not included in the sum",
                    duration(longest)
                )
            }
            Some(longest) => format!(
                "{sessions} were already waiting at the first snapshot, the longest for {}, {} in total; not included in the sum",
                duration(longest),
                duration(self.seconds)
            ),
            None => format!(
                "{sessions} already waiting at the first snapshot, for an unknown time that is not included in the sum"
            ),
        })
    }
}
