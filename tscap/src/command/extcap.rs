//! Answers to Wireshark, which runs what is in its extcap folder (extcap(4)).

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::print::print;
use super::{Context as _, Exit, Failure, capture, filter, say_failure};
use tscap_cli::{ExtcapPlan, FilterSource, extcap_config, extcap_value};
use tscap_filter::LinkType;
use tscap_live::membership;
use tscap_network::netdev::{self, Link};

const ANY: &str = "any";
/// How long the reader of a pipe may take to open it.
const READER_WITHIN: Duration = Duration::from_secs(2);
const READER_EVERY: Duration = Duration::from_millis(20);

pub(super) fn run(plan: &ExtcapPlan) -> Result<Exit, Failure> {
    match plan {
        ExtcapPlan::Interfaces => print(&interfaces()?),
        ExtcapPlan::LinkType { interface } => print(&dlt(link_type(interface)?)),
        ExtcapPlan::Config => print(&extcap_config()),
        ExtcapPlan::CheckFilter { interface, filter } => match check(interface, filter) {
            Ok(()) => Ok(Exit::Success),
            // Wireshark takes the first line as what is wrong, of a run that succeeds.
            Err(failure) => print(&format!("{}\n", failure.chain())),
        },
        ExtcapPlan::Capture { plan, fifo } => {
            let ended = membership::check(&plan.acts()).and_then(|()| capture::run(plan));
            Ok(ended.unwrap_or_else(|failure| give_up(fifo, &failure)))
        }
        ExtcapPlan::Refused { fifo, error } => {
            let failure = Failure::new(error).hint("change the options of the interface");
            Ok(give_up(fifo, &failure))
        }
        ExtcapPlan::Nothing => Ok(Exit::Success),
    }
}

/// A sentence for the version, and one for each interface that can be captured on.
fn interfaces() -> Result<String, Failure> {
    let links = netdev::all().context("cannot list the interfaces")?;
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("extcap {{version={version}}}{{display=tscap}}\n");
    let is_usable = |link: &&Link| link.is_up && link.frames().is_some();
    let names = links.iter().filter(is_usable).map(|link| &*link.name);
    for name in names.chain([ANY]) {
        let value = extcap_value(name);
        // Also as it is shown: the grammar has no way to escape.
        let shown = &value["tscap-".len()..];
        text += &format!("interface {{value={value}}}{{display=tscap: {shown}}}\n");
    }
    Ok(text)
}

/// Of the frames of an interface; Ethernet where it is not one alone.
fn link_type(interface: &str) -> Result<LinkType, Failure> {
    if interface == ANY {
        return Ok(LinkType::Ethernet);
    }
    let what = || format!("cannot look up interface {interface}");
    let link = netdev::by_name(interface).context(what())?;
    let frames = link.and_then(|link| link.frames());
    frames.ok_or_else(|| {
        Failure::new(format!(
            "{}: it is not there, or can't be captured on",
            what()
        ))
        .hint("refresh the interfaces in Wireshark's menu Capture")
    })
}

fn dlt(link_type: LinkType) -> String {
    let (name, display) = match link_type {
        LinkType::Ethernet => ("EN10MB", "Ethernet"),
        LinkType::RawIp => ("RAW", "Raw IP"),
    };
    let number = link_type.dlt();
    format!("dlt {{number={number}}}{{name={name}}}{{display={display}}}\n")
}

/// What is wrong with a filter for an interface.
fn check(interface: &str, source: &FilterSource) -> Result<(), Failure> {
    let filter = filter::compile(source)?;
    filter.program_for(link_type(interface)?, None).map(|_| ())
}

/// Says why there is no capture, then tells the reader of the pipe that nothing comes. It
/// waits for a first writer without end, and does not look for a reason after the end.
fn give_up(fifo: &Path, failure: &Failure) -> Exit {
    say_failure(failure);
    end_of_file(fifo);
    Exit::Fault
}

/// Opens a pipe for its reader, and closes it.
fn end_of_file(fifo: &Path) {
    let deadline = Instant::now() + READER_WITHIN;
    let open = || {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(fifo)
    };
    while let Err(error) = open() {
        let has_no_reader = error.raw_os_error() == Some(libc::ENXIO);
        if !has_no_reader || Instant::now() >= deadline {
            return;
        }
        thread::sleep(READER_EVERY);
    }
}
