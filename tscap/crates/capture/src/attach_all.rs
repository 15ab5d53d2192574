//! Attaches to all interfaces that a capture begins with.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::task::yield_now;

use super::attach::Attaching;
use super::event::Reporter;
use super::gathered::Gathered;
use super::left_out::LeftOut;
use super::live_links::LiveLinks;
use super::plan::Capture;
use super::selection::{Interfaces, Selected};
use tscap_base::failure::Failure;
use tscap_engine::PtpClock;
use tscap_file::pcapng::InterfaceInfo;
use tscap_programs::hook::{Loaded, Port};

/// So many interfaces are attached to between two looks at what asks this process to end, while
/// the programs of the next ones are loaded: attaching a program waits 8 to 16 ms for the CPUs at
/// 250 Hz (`synchronize_rcu`, with the lock of all interfaces: `bpf_dispatcher_change_prog`,
/// kernel/bpf/dispatcher.c, and `tcx_link_attach`, kernel/bpf/tcx.c), and its verifier takes 2
/// to 9 ms.
const TOGETHER: usize = 4;
/// Most threads that load programs.
const MOST_LOADERS: usize = 4;

/// The interfaces with their programs.
#[derive(Default)]
pub(super) struct AllAttached {
    pub links: LiveLinks,
    /// What the file says of each.
    pub described: Vec<InterfaceInfo>,
    /// The clock of its hardware stamps, if it has one.
    pub stamps_by: Vec<Option<Arc<PtpClock>>>,
}

impl AllAttached {
    fn next_number(&self) -> u32 {
        self.described.len() as u32
    }
}

/// Attaches to each. When the future is dropped, nothing stays attached.
///
/// # Errors
/// If one that was asked for by name can't be attached to.
pub(super) async fn attach_all(
    (plan, interfaces): (&Capture, &Interfaces),
    attaching: &mut Attaching,
    loaded: &Loaded,
    (left_out, reporter): (&mut LeftOut, &mut Reporter<'_>),
) -> Result<AllAttached, Failure> {
    let mut all = AllAttached::default();
    let mut gathered = Gathered::default();
    let mut groups = groups(&interfaces.now).peekable();
    let mut result = Ok(());
    while let Some(group) = groups.next() {
        let first = all.next_number();
        let is_usable = |selected: &&Selected| interfaces.selection.check_frames(selected).is_ok();
        // If the programs of these can all be attached.
        let next_number = first + group.iter().filter(is_usable).count() as u32;
        std::thread::scope(|threads| {
            let next = groups.peek().copied().unwrap_or_default();
            let loaders = available_parallelism().map_or(1, NonZero::get);
            let loaders = loaders.min(MOST_LOADERS).min(next.len());
            for loader in 0..loaders {
                let next = next.iter().filter(is_usable);
                let its = (next_number..).zip(next).skip(loader).step_by(loaders);
                let work = move || its.for_each(|it| load_ahead(plan, interfaces, loaded, it));
                // Without the thread they are loaded when they are attached.
                let _ = std::thread::Builder::new().spawn_scoped(threads, work);
            }
            let said = (&mut gathered, &mut *left_out);
            result = attach(group, interfaces, attaching, loaded, &mut all, said);
        });
        if result.is_err() {
            break;
        }
        if all.next_number() != next_number {
            loaded.loader().discard_preloaded();
        }
        // A request to end is noticed here.
        yield_now().await;
    }
    loaded.loader().discard_preloaded();
    gathered.tell(reporter);
    result?;
    if all.described.is_empty() {
        reporter.note(&interfaces.selection.waits_for());
    }
    Ok(all)
}

/// In the order in which they are attached to. For the first one nothing could be loaded ahead:
/// it is alone, so that no other one waits for its own programs.
fn groups<T>(all: &[T]) -> impl Iterator<Item = &[T]> {
    let (first, others) = all.split_at(all.len().min(1));
    let first = (!first.is_empty()).then_some(first);
    first.into_iter().chain(others.chunks(TOGETHER))
}

fn attach(
    group: &[Selected],
    interfaces: &Interfaces,
    attaching: &mut Attaching,
    loaded: &Loaded,
    all: &mut AllAttached,
    (gathered, left_out): (&mut Gathered, &mut LeftOut),
) -> Result<(), Failure> {
    for selected in group {
        let scope = interfaces.scope_of(selected);
        let number = all.next_number();
        let name = &selected.link.name;
        let usable = interfaces.selection.check_frames(selected);
        let is_foreseen = usable.is_ok();
        let attached = usable.and_then(|()| {
            let mut on_event = |event| gathered.add_event((name, scope.label()), event);
            let reporter = &mut Reporter::new(&mut on_event);
            attaching.attach(selected, scope, number, loaded, reporter)
        });
        match attached {
            Ok(attached) => {
                all.links.0.push(attached.live);
                all.described.push(attached.described);
                all.stamps_by.push(attached.stamps_by);
            }
            Err(failure) if selected.is_named => return Err(failure),
            Err(failure) => {
                // The next interface gets this number, and may want another filter.
                if is_foreseen {
                    loaded.loader().discard_preloaded();
                }
                if left_out.remember(selected, scope, &failure).is_some() {
                    gathered.left_out((name, scope.label()), &failure);
                }
            }
        }
    }
    Ok(())
}

/// Loads what interface `number` is likely to want.
fn load_ahead(
    plan: &Capture,
    interfaces: &Interfaces,
    loaded: &Loaded,
    (number, selected): (u32, &Selected),
) {
    let link = &selected.link;
    let Ok(filter) = plan.filter_in(interfaces.scope_of(selected), link) else {
        return;
    };
    let port = Port {
        link,
        number,
        filter,
    };
    let directions = plan.direction.of(link);
    // Whoever attaches there is told why it can't be entered.
    let _ = interfaces.scope_of(selected).visit(|| {
        let points = (plan.hook, plan.egress_point);
        loaded.loader().load_ahead(&port, directions, points);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_interface_is_alone_and_none_is_left_out() {
        for count in 0..20_usize {
            let all: Vec<_> = (0..count).collect();
            let sizes: Vec<_> = groups(&all).map(<[_]>::len).collect();
            assert_eq!(groups(&all).flatten().copied().collect::<Vec<_>>(), all);
            assert_eq!(sizes.first().copied(), (count > 0).then_some(1), "{count}");
            assert!(sizes.iter().all(|size| (1..=TOGETHER).contains(size)));
        }
    }
}
