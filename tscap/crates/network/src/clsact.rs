//! Programs of tc on kernels without tcx (before 6.6): as filters of the queueing
//! discipline clsact, over rtnetlink.
//!
//! Such a filter outlives the process. Its place is therefore known before it is made
//! ([`Filter::plan`]), so that it can be journalled, and it is known again for sure: the
//! handle is made of the program's id, and only a filter with that very program is removed.
//!
//! Filters of one priority and protocol that are of the kind bpf run with the latest one first
//! (`cls_bpf_change` adds to the head of the list, net/sched/cls_bpf.c), priorities in
//! their order (`tcf_chain_tp_find`, net/sched/cls_api.c). So priority 1 runs before
//! everything that is there, unless filters of another kind or protocol have it.

mod attached;
mod message;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use serde::{Deserialize, Serialize};

pub use self::attached::Clsact;
use self::message::{BPF, Found, Qdisc, Request};
use crate::netlink::{self, NetlinkError};

/// A bit above every handle that the kernel gives (`__cls_bpf_alloc_idr`: to `INT_MAX`).
const OWN_HANDLES: u32 = 1 << 31;
/// How often a discipline is made again that somebody removes meanwhile.
const ATTEMPTS: u32 = 3;

/// Why a filter or its discipline could not be looked up, made or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClsactError {
    /// The kernel refused, or did not answer.
    #[error("cannot {operation}")]
    Request {
        /// What was tried.
        operation: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The discipline `ingress` is in the place of clsact, and has no side for frames that are
    /// sent: the kernel would take the filter for received ones.
    #[error("the queueing discipline ingress is where clsact has to be")]
    IngressOnly,
    /// Filters are in a block that several interfaces share.
    #[error("the filters are in a block that other interfaces share")]
    SharedBlock,
    /// Every priority is taken by filters of another kind.
    #[error("no priority is left for a filter")]
    NoPriority,
}

impl ClsactError {
    /// Whether the interface does not exist any more.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Request { source, .. } if source.raw_os_error() == Some(libc::ENODEV))
    }
}

/// The side of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Received frames, behind XDP.
    Ingress,
    /// Frames to be sent, before the queueing discipline.
    Egress,
}

impl Side {
    /// Its name, as `tc` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// The place of a filter on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// The side.
    pub side: Side,
    /// Its priority, from 1; lower ones run before.
    pub priority: u16,
    /// The program's id, which the kernel gives once (`bpf_prog_alloc_id`, cyclic).
    pub program: u32,
    /// Number of the filter at its priority (`tc filter show` has it as handle).
    pub handle: u32,
}

/// What is in the place of the discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QdiscState {
    /// Nothing.
    None,
    /// clsact without filters.
    Unused,
    /// clsact with filters or shared blocks.
    Used,
    /// The older discipline `ingress`.
    Ingress,
}

/// An interface with its filters, in the network namespace in which the thread was that
/// opened it, whichever thread asks.
#[derive(Debug)]
pub struct Filters {
    socket: Socket,
    ifindex: u32,
}

impl Filters {
    /// Those of the interface with number `ifindex`.
    ///
    /// # Errors
    /// If no netlink socket can be opened.
    pub fn of(ifindex: u32) -> Result<Self, ClsactError> {
        let socket = Socket::new(NETLINK_ROUTE).map_err(refused("open a netlink socket"))?;
        Ok(Self { socket, ifindex })
    }

    /// What is in the place of the discipline.
    ///
    /// # Errors
    /// See [`ClsactError`].
    pub fn qdisc(&self) -> Result<QdiscState, ClsactError> {
        let Some(qdisc) = self.find_qdisc()? else {
            return Ok(QdiscState::None);
        };
        if qdisc.kind != "clsact" {
            return Ok(QdiscState::Ingress);
        }
        let is_used = qdisc.has_block
            || !self.list(Side::Ingress)?.is_empty()
            || !self.list(Side::Egress)?.is_empty();
        Ok(if is_used {
            QdiscState::Used
        } else {
            QdiscState::Unused
        })
    }

    /// Removes clsact if it has no filters. One that somebody adds between the look and the
    /// removal goes with it: the kernel has no such condition.
    ///
    /// # Errors
    /// See [`ClsactError`]; that it is gone is none.
    pub fn remove_unused_qdisc(&self) -> Result<(), ClsactError> {
        if self.qdisc()? != QdiscState::Unused {
            return Ok(());
        }
        let removed = self.ask(Request::RemoveQdisc);
        unless_gone(removed).map_err(failed("remove the queueing discipline clsact"))
    }

    /// Where `program` would be attached.
    ///
    /// # Errors
    /// See [`ClsactError`].
    pub fn plan(&self, program: BorrowedFd<'_>, side: Side) -> Result<Filter, ClsactError> {
        if let Some(qdisc) = self.find_qdisc()? {
            if qdisc.kind != "clsact" && side == Side::Egress {
                return Err(ClsactError::IngressOnly);
            }
            if qdisc.has_block {
                return Err(ClsactError::SharedBlock);
            }
        }
        let program = program_id(program).map_err(refused("read the id of the program"))?;
        Ok(Filter {
            side,
            priority: priority(&self.list(side)?).ok_or(ClsactError::NoPriority)?,
            program,
            handle: OWN_HANDLES | program,
        })
    }

    /// Whether exactly this filter is there.
    ///
    /// # Errors
    /// See [`ClsactError`].
    pub fn has(&self, filter: &Filter) -> Result<bool, ClsactError> {
        let found = self.list(filter.side)?;
        Ok(found.iter().any(|found| filter.is(found)))
    }

    /// Removes exactly this filter, if it is there.
    ///
    /// # Errors
    /// See [`ClsactError`].
    pub fn remove(&self, filter: &Filter) -> Result<(), ClsactError> {
        if !self.has(filter)? {
            return Ok(());
        }
        let removed = self.ask(Request::Remove(filter));
        unless_gone(removed).map_err(failed("remove the filter"))
    }

    /// Attaches `program` in its place, to the discipline that is there or a new one.
    fn add(&self, filter: &Filter, program: BorrowedFd<'_>, name: &str) -> Result<(), ClsactError> {
        let add = Request::Add {
            filter,
            program,
            name,
        };
        let mut attempt = 1;
        loop {
            self.make_qdisc()?;
            match self.ask(add) {
                // Without the discipline (`__tcf_qdisc_find`): somebody has removed it.
                Err(error)
                    if errno(&error) == Some(libc::EINVAL)
                        && attempt < ATTEMPTS
                        && self.find_qdisc()?.is_none() =>
                {
                    attempt += 1;
                }
                added => return added.map(drop).map_err(failed("add the filter")),
            }
        }
    }

    fn make_qdisc(&self) -> Result<(), ClsactError> {
        match self.ask(Request::MakeQdisc) {
            Err(error) if errno(&error) == Some(libc::EEXIST) => Ok(()),
            made => made
                .map(drop)
                .map_err(failed("make the queueing discipline clsact")),
        }
    }

    fn find_qdisc(&self) -> Result<Option<Qdisc>, ClsactError> {
        let operation = "list the queueing disciplines";
        let messages = self.ask(Request::ListQdiscs).map_err(failed(operation))?;
        for message in messages {
            let qdisc = Qdisc::parse(&message).map_err(|error| failed(operation)(error.into()))?;
            if qdisc.is_at(self.ifindex) {
                return Ok(Some(qdisc));
            }
        }
        Ok(None)
    }

    /// The filters of a side; priorities too, which have the handle 0.
    fn list(&self, side: Side) -> Result<Vec<Found>, ClsactError> {
        let operation = "list the filters";
        let listed = self.ask(Request::ListFilters(side));
        let messages = listed.map_err(failed(operation))?;
        let found = messages.iter().map(|message| Found::parse(message));
        found
            .collect::<Result<_, _>>()
            .map_err(|error| failed(operation)(error.into()))
    }

    fn ask(&self, request: Request<'_>) -> Result<Vec<Vec<u8>>, NetlinkError> {
        // One number for all: a request is over before the next.
        let answer = netlink::ask(&self.socket, &request.bytes(self.ifindex, 1), 1)?;
        Ok(answer.messages)
    }
}

impl Filter {
    /// Whether its program runs before all that are there now. Those of priority 1 come
    /// before it if they are of another kind or protocol.
    pub fn is_first(&self) -> bool {
        self.priority == 1
    }

    fn is(&self, found: &Found) -> bool {
        (found.handle, found.priority, found.program)
            == (self.handle, self.priority, Some(self.program))
    }
}

/// The first priority whose filters ours can join, or that nobody has.
fn priority(found: &[Found]) -> Option<u16> {
    let is_ours = |found: &&Found| found.kind == BPF && found.is_for_all_protocols;
    let others = found.iter().filter(|found| !is_ours(found));
    let taken: BTreeSet<u16> = others.map(|found| found.priority).collect();
    (1..=u16::MAX).find(|priority| !taken.contains(priority))
}

/// The id of a program (`bpf_prog_show_fdinfo`, kernel/bpf/syscall.c).
fn program_id(program: BorrowedFd<'_>) -> io::Result<u32> {
    let path = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    let info = fs::read_to_string(path)?;
    let id = info.lines().find_map(|line| line.strip_prefix("prog_id:"));
    id.and_then(|id| id.trim().parse().ok())
        .ok_or_else(|| io::Error::other("no prog_id in its fdinfo"))
}

/// What was to be removed may be gone: with the interface, or by somebody else.
fn unless_gone(removed: Result<Vec<Vec<u8>>, NetlinkError>) -> Result<(), NetlinkError> {
    match removed {
        Err(error)
            if matches!(
                errno(&error),
                Some(libc::ENODEV | libc::ENOENT | libc::EINVAL)
            ) =>
        {
            Ok(())
        }
        removed => removed.map(drop),
    }
}

fn errno(error: &NetlinkError) -> Option<i32> {
    match error {
        NetlinkError::Refused(error) => error.raw_os_error(),
        _ => None,
    }
}

fn failed(operation: &'static str) -> impl FnOnce(NetlinkError) -> ClsactError {
    move |error| refused(operation)(error.into())
}

fn refused(operation: &'static str) -> impl FnOnce(io::Error) -> ClsactError {
    move |source| ClsactError::Request { operation, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_priority_is_taken_that_can_be_shared() {
        let filters = |list: &[(u16, &str, bool)]| -> Vec<Found> {
            let found = list.iter().map(|(priority, kind, all)| Found {
                priority: *priority,
                kind: (*kind).into(),
                is_for_all_protocols: *all,
                ..Found::default()
            });
            found.collect()
        };
        assert_eq!(priority(&[]), Some(1));
        assert_eq!(
            priority(&filters(&[(1, BPF, true), (2, "u32", true)])),
            Some(1)
        );
        assert_eq!(priority(&filters(&[(1, BPF, false)])), Some(2));
        let taken = [(1, "flower", true), (2, "matchall", false), (3, BPF, true)];
        assert_eq!(priority(&filters(&taken)), Some(3));
        let all: Vec<_> = (1..=u16::MAX).map(|it| (it, "u32", true)).collect();
        assert_eq!(priority(&filters(&all)), None);
    }

    #[test]
    fn a_filter_is_known_by_its_program() {
        let filter = Filter {
            side: Side::Egress,
            priority: 1,
            program: 77,
            handle: OWN_HANDLES | 77,
        };
        let mut found = Found {
            handle: filter.handle,
            priority: 1,
            program: Some(77),
            ..Found::default()
        };
        assert!(filter.is(&found) && filter.is_first());
        found.program = Some(78);
        assert!(!filter.is(&found), "the handle again");
        found.program = None;
        assert!(!filter.is(&found));
    }

    #[test]
    fn what_is_no_program_has_no_id() {
        use std::os::fd::AsFd as _;
        let file = fs::File::open("/dev/null").unwrap();
        assert!(program_id(file.as_fd()).is_err());
    }
}
