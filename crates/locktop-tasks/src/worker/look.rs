use super::connected::Connected;
use super::event::Event;
use super::idle::glance_in;
use super::pollers::Poller;
use super::stop::Work;
use crate::work_session::{News, SessionError, Source};
use locktop_base::clock;

impl<W: Work> Connected<'_, W> {
    /// Checks the due times of all sources at once.
    pub(super) async fn glance(&mut self) -> Result<(), SessionError> {
        const WHAT: &str = "reading when work is due";
        self.glance_at = clock::monotonic() + glance_in(false);
        match self.session.glance().await {
            Ok(due) => {
                self.accepted(WHAT);
                for (source, due) in Source::ALL.into_iter().zip(due) {
                    if let Some(Poller { idle, .. }) = self.pollers.of(source) {
                        idle.glanced(clock::monotonic(), due);
                    }
                }
            }
            Err(error) => self.refused(WHAT, error)?,
        }
        Ok(())
    }

    pub(super) async fn look(&mut self, source: Source) -> Result<(), SessionError> {
        for news in self.session.news_so_far() {
            self.hear(news);
        }
        let what = what(source);
        match self.pollers.of(source) {
            Some(poller) if poller.idle.at <= clock::monotonic() => {}
            _ => return Ok(()),
        }
        match self.fetch(source).await {
            Ok(()) => self.accepted(what),
            Err(error) => {
                self.refused(what, error)?;
                self.untidy = true;
                if let Some(poller) = self.pollers.of(source) {
                    poller.idle.failed(clock::monotonic());
                }
            }
        }
        self.tidy().await
    }

    async fn fetch(&mut self, source: Source) -> Result<(), SessionError> {
        let free = self.running_jobs.free();
        let mut took = self.take(source).await?;
        let tends = source == Source::Queue && (took < free || self.pollers.tends(clock::monotonic()));
        if tends && self.requeue().await? && took < free {
            took += self.take(source).await?;
        }
        let mut heard = self.session.news_so_far();
        let told = heard.iter().any(|news| matches!(news, News::Quiet(of, _) if *of == source));
        let Some(Poller { idle, .. }) = self.pollers.of(source) else { return Ok(()) };
        let (tells, pause) = (idle.tells() && !told, idle.pause);
        if took >= free {
            idle.took_all(clock::monotonic());
            // There may be more, for other workers; if not, they can be notified.
            if tells {
                self.session.next_due_telling(source, None).await?;
            }
            return self.pass_on(source, tells, heard).await;
        }
        let due = if tells {
            self.session.next_due_telling(source, Some(pause)).await?
        } else {
            self.session.next_due(source).await?
        };
        heard.extend(self.session.news_so_far());
        if let Some(Poller { idle, .. }) = self.pollers.of(source) {
            idle.looked(clock::monotonic(), took > 0, due);
        }
        self.heard_while_looking(source, heard);
        Ok(())
    }

    /// Takes a job for each free slot, starts the work, and returns their number.
    async fn take(&mut self, source: Source) -> Result<usize, SessionError> {
        let asked = clock::since_boot();
        let taken = self.session.fetch(source, self.running_jobs.free()).await?;
        let took = taken.len();
        if took > 0 {
            self.pollers.served(source);
            if self.running_jobs.running() == 0 {
                self.hold.confirm(asked);
                self.heartbeat_at = clock::monotonic() + self.options.heartbeat;
            }
        }
        let working = self.running_jobs.tasks();
        for job in taken {
            let again = |task: &i32| source == Source::Tasks && i64::from(*task) == job.task_id;
            if working.iter().any(again) {
                // Another session closed it while its work still runs here; this session holds its lock, and so got it again.
                self.give_back(job).await?;
                self.heartbeat_at = clock::monotonic();
            } else {
                self.running_jobs.start(job, &self.hold);
            }
        }
        if !self.hold.is_good() {
            // The process was just suspended: the work waits for this heartbeat.
            self.heartbeat_at = clock::monotonic();
        }
        Ok(took)
    }

    /// Takes back lost items. Returns whether any of them can be taken again.
    async fn requeue(&mut self) -> Result<bool, SessionError> {
        let mut again = false;
        for requeued in self.session.requeue_lost().await? {
            again |= requeued.again;
            self.options.report.tell(&Event::Requeued(requeued));
        }
        Ok(again)
    }

    /// Handles notifications that arrived while a worker without a free slot reported that nothing is left: it cannot poll,
    /// so it notifies the others to poll.
    async fn pass_on(
        &mut self,
        source: Source,
        told: bool,
        mut heard: Vec<News>,
    ) -> Result<(), SessionError> {
        // The others poll by themselves for earlier notifications.
        heard.retain(|news| news.source() != source);
        let since = self.session.news_so_far();
        if told && since.contains(&News::Due(source)) {
            self.session.tell_due(source).await?;
        }
        heard.extend(
            since
                .into_iter()
                .filter(|news| !matches!(news, News::Due(of) | News::Quiet(of, _) if *of == source)),
        );
        for news in heard {
            self.hear(news);
        }
        Ok(())
    }

    /// Some notifications that arrive during a poll are about what it has just seen. Only a due notification is news,
    /// because the poll may not have seen that work.
    fn heard_while_looking(&mut self, source: Source, heard: Vec<News>) {
        let news = heard.contains(&News::Due(source));
        for news in heard {
            if news.source() != source || news == News::Told(source) {
                self.hear(news);
            }
        }
        if let Some(Poller { idle, .. }) = self.pollers.of(source).filter(|_| news) {
            idle.heard_while_looking(clock::monotonic());
        }
    }
}

fn what(source: Source) -> &'static str {
    match source {
        Source::Tasks => "reading due tasks",
        Source::Queue => "reading items of the queue",
    }
}
