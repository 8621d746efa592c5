//! The closed loop: so many slots, each sending one request after the other.

use std::{rc::Rc, time::Duration};

use tokdyno_domain::prompts::PromptSet;
use tokio::task::JoinSet;

use super::{
    Slots,
    connect::freshen,
    job::{Conversation, Job},
    state::Load,
};
use crate::{connection::Connection, progress::Speed};

/// How long a slot without a connection waits while others have theirs: without a
/// pause it would use up the requests before any of these is answered.
const PAUSE: Duration = Duration::from_millis(100);
/// Slots that send their first request in each millisecond. All at once would be a
/// burst that waits in the server's sockets, and each later wave would be one, too.
const RAMP: usize = 40;

/// Runs the slots to their end.
pub(super) async fn run(load: &Rc<Load>, slots: &mut Slots) {
    let mut running = JoinSet::new();
    for (place, connection) in slots.drain(..).enumerate() {
        let wait_ms = u64::try_from(place / RAMP).unwrap_or(0);
        running.spawn_local(Rc::clone(load).slot(connection, Duration::from_millis(wait_ms)));
    }
    let mut tick = super::ticks();
    let mut speed = Speed::default();
    loop {
        tokio::select! {
            biased;
            joined = running.join_next() => match joined {
                Some(Ok(connection)) => slots.push(connection),
                Some(Err(error)) => {
                    load.take_fault(&error);
                    slots.push(None);
                }
                None => break,
            },
            _ = tick.tick() => load.tell(&mut speed),
        }
    }
    load.tell(&mut speed);
}

impl Load {
    /// One slot: after a while a request at a time until none is left.
    async fn slot(
        self: Rc<Self>,
        mut connection: Option<Connection>,
        wait: Duration,
    ) -> Option<Connection> {
        let converses =
            !self.plan.warming && matches!(self.shared.prompts, PromptSet::Conversations { .. });
        self.rest(wait).await;
        while self.may_issue() {
            if converses {
                self.converse(&mut connection).await;
            } else {
                self.one(&mut connection).await;
            }
            if self.lacks_connections() && connection.is_none() {
                self.rest(PAUSE).await;
            }
        }
        connection
    }

    /// Sends nothing for a while, or until the stop flag is raised.
    async fn rest(&self, wait: Duration) {
        if wait.is_zero() {
            return;
        }
        tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    async fn one(&self, slot: &mut Option<Connection>) {
        self.issue();
        freshen(slot).await;
        if let Some(opened) = self.shared.connect(slot).await {
            let job = Job::new(&self.shared, &self.plan, self.next_seq().into());
            self.send(slot, job, opened, None).await;
        }
    }

    /// The next conversation, turn by turn, until its end, its first failure, or
    /// the end of the stage.
    async fn converse(&self, slot: &mut Option<Connection>) {
        let mut talk =
            Conversation::new(&self.shared.prompts, &self.plan, self.next_conversation());
        while self.may_issue() {
            self.issue();
            freshen(slot).await;
            let Some(opened) = self.shared.connect(slot).await else {
                return;
            };
            let job = talk.job(&self.shared, &self.plan);
            let mut answer = String::new();
            let succeeded = self.send(slot, job, opened, Some(&mut answer)).await;
            if !succeeded || !talk.go_on(answer) {
                return;
            }
        }
    }
}
