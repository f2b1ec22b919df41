use super::connected::Connected;
use super::event::Event;
use super::idle::glance_in;
use super::stop::Work;
use crate::work_session::{News, SessionError, Source};
use locktop_base::clock;

impl<W: Work> Connected<'_, W> {
    /// Checks the due times of all sources at once.
    pub(super) async fn glance(&mut self) -> Result<(), SessionError> {
        self.glance_at = clock::monotonic() + glance_in(false);
        let answer = self.session.glance().await;
        let due = self.answered("reading when work is due", answer)?;
        for (source, due) in Source::ALL.into_iter().zip(due.into_iter().flatten()) {
            if let Some(idle) = self.pollers.of(source) {
                idle.glanced(clock::monotonic(), due);
            }
        }
        Ok(())
    }

    pub(super) async fn poll(&mut self, source: Source) -> Result<(), SessionError> {
        for news in self.session.news_so_far() {
            self.handle(news);
        }
        if self.pollers.of(source).is_none_or(|idle| idle.at > clock::monotonic()) {
            return Ok(());
        }
        let what = match source {
            Source::Tasks => "reading due tasks",
            Source::Queue => "reading items of the queue",
        };
        let answer = self.fetch(source).await;
        if self.answered(what, answer)?.is_none() {
            self.untidy = true;
            if let Some(idle) = self.pollers.of(source) {
                idle.failed(clock::monotonic());
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
        let Some(idle) = self.pollers.of(source) else { return Ok(()) };
        let (tells, pause) = (idle.notifies() && !told, idle.pause);
        if took >= free {
            idle.took_all(clock::monotonic());
            // There may be more, for other workers; if not, they can be notified.
            if tells {
                self.session.next_due_notifying(source, None).await?;
            }
            return self.pass_on(source, tells, heard).await;
        }
        let due = if tells {
            self.session.next_due_notifying(source, Some(pause)).await?
        } else {
            self.session.next_due(source).await?
        };
        heard.extend(self.session.news_so_far());
        if let Some(idle) = self.pollers.of(source) {
            idle.polled(clock::monotonic(), took > 0, due);
        }
        self.notified_during_poll(source, heard);
        Ok(())
    }

    /// Takes a job for each free slot, starts the work, and returns their number.
    async fn take(&mut self, source: Source) -> Result<usize, SessionError> {
        let asked = clock::since_boot();
        let taken = self.session.fetch(source, self.running_jobs.free()).await?;
        let took = taken.len();
        if took > 0 {
            self.pollers.served = Some(source);
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
            self.options.report.send(&Event::Requeued(requeued));
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
            self.session.notify_due(source).await?;
        }
        heard.extend(
            since
                .into_iter()
                .filter(|news| !matches!(news, News::Due(of) | News::Quiet(of, _) if *of == source)),
        );
        for news in heard {
            self.handle(news);
        }
        Ok(())
    }

    /// Some notifications that arrive during a poll are about what it has just seen. Only a due notification is news,
    /// because the poll may not have seen that work.
    fn notified_during_poll(&mut self, source: Source, heard: Vec<News>) {
        let news = heard.contains(&News::Due(source));
        for news in heard {
            if news.source() != source || news == News::Notified(source) {
                self.handle(news);
            }
        }
        if let Some(idle) = self.pollers.of(source).filter(|_| news) {
            idle.notified_during_poll(clock::monotonic());
        }
    }

    pub(super) fn handle(&mut self, news: News) {
        // Notifications about a source that is not polled are ignored.
        if let Some(idle) = self.pollers.of(news.source()) {
            let now = clock::monotonic();
            match news {
                News::Due(_) => idle.notified(now),
                News::Quiet(_, due) => idle.quiet(now, due),
                News::Notified(_) => idle.notified_others(),
            }
        }
    }
}
