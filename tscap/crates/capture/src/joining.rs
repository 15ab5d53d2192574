//! Interfaces that join a capture that runs: those that appear, come up or are renamed so
//! that they match.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use super::left_out::LeftOut;
use super::live_links::LiveLinks;
use super::selection::{Selected, Selection};
use tscap_base::failure::{Context as _, Failure};
use tscap_host::readable::Readable;
use tscap_live::Scope;
use tscap_network::link_watch::{LinkEvent, LinkWatch};
use tscap_network::netdev::{self, Link};

/// What is known of the interfaces of each namespace, and which of them are to join.
#[derive(Debug)]
pub(super) struct Joining {
    /// By the index of the namespace; none if no interface may join.
    watches: Vec<Readable<LinkWatch>>,
    waiting: VecDeque<Selected>,
    pub left_out: LeftOut,
}

impl Joining {
    /// Those in `left_out` were left out at the start.
    pub fn new(watches: Vec<LinkWatch>, left_out: LeftOut) -> Result<Self, Failure> {
        let watches = watches.into_iter().map(Readable::new);
        let watches = watches.collect::<io::Result<_>>();
        Ok(Self {
            watches: watches.context("cannot watch for interfaces that join")?,
            waiting: VecDeque::new(),
            left_out,
        })
    }

    /// Waits until there is news of the interfaces of a namespace: its index. At once if
    /// interfaces wait to join. Safe to cancel.
    pub async fn news(&self) -> io::Result<Option<usize>> {
        if !self.waiting.is_empty() {
            // Whoever else is due has a turn between two of them.
            tokio::task::yield_now().await;
            return Ok(None);
        }
        poll_fn(|context| {
            for (scope, watch) in self.watches.iter().enumerate() {
                if let Poll::Ready(ready) = watch.poll(context) {
                    ready?;
                    return Poll::Ready(Ok(Some(scope)));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Hears what has happened in namespace number `scope`.
    pub fn observe(
        &mut self,
        scope: usize,
        scopes: &[Scope],
        selection: &Selection,
        links: &LiveLinks,
    ) -> Result<(), Failure> {
        let events = match self.watches[scope].get().read() {
            Ok(events) => events,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("cannot hear of interfaces that join"),
        };
        for event in events {
            match event {
                LinkEvent::Changed(link) => self.consider(scope, *link, scopes, selection, links),
                // Looked at again before it joins.
                LinkEvent::Gone { .. } => {}
                LinkEvent::Missed => {
                    for link in scopes[scope]
                        .visit(netdev::all)?
                        .context("cannot list the interfaces")?
                    {
                        self.consider(scope, link, scopes, selection, links);
                    }
                }
            }
        }
        Ok(())
    }

    fn consider(
        &mut self,
        scope: usize,
        link: Link,
        scopes: &[Scope],
        selection: &Selection,
        links: &LiveLinks,
    ) {
        let Some(selected) = selection.joining(scope, link) else {
            return;
        };
        let is_it = |it: &Selected| it.scope == scope && it.link.index == selected.link.index;
        if !self.waiting.iter().any(is_it) && !links.has(scope, &selected.link, scopes) {
            self.waiting.push_back(selected);
        }
    }

    /// The next interface that is to join, as it is now.
    pub fn next(
        &mut self,
        scopes: &[Scope],
        selection: &Selection,
        links: &LiveLinks,
    ) -> Option<Selected> {
        while let Some(Selected { scope, link, .. }) = self.waiting.pop_front() {
            let now = scopes[scope].visit(|| netdev::by_index(link.index));
            let now = now.ok().and_then(Result::ok).flatten();
            let selected = now.and_then(|now| selection.joining(scope, now));
            let is_new = |it: &Selected| !links.has(scope, &it.link, scopes);
            if let selected @ Some(_) = selected.filter(is_new) {
                return selected;
            }
        }
        None
    }
}
