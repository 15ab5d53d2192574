//! What hardware stamps take besides programs: the PTP clocks of the interfaces, each read by
//! a thread, and the interfaces' receive filters.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::event::Reporter;
use super::pinning;
use super::plan::HardwareStamps;
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_engine::PtpClock;
use tscap_file::pcapng::HardwareOption;
use tscap_host::caps;
use tscap_live::settings::{Change, InterfaceId, Planned, Setting, SettingsGuard};
use tscap_network::ethtool::{self, ReceiveFilter};
use tscap_network::netdev::Link;
use tscap_references::NicReading;
use tscap_time::ptp::PtpDevice;

/// Between two readings of a clock. Its bound is of stamps between two that are 30 ms apart at
/// most (`STALL_NS` of the counter's clock).
const READ_EVERY: Duration = Duration::from_millis(15);
/// A clock that gives no rate by then is left to the converters.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);

/// The PTP clocks of a capture, by number. Their threads end when this is dropped.
#[derive(Debug, Default)]
pub struct PtpClocks(BTreeMap<u32, Reader>);

#[derive(Debug)]
struct Reader {
    clock: Arc<PtpClock>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PtpClocks {
    /// The clock that `link` of this thread's network namespace stamps by, and the file it is;
    /// `None` if it has none.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn of(&mut self, link: &Link) -> Result<Option<(PathBuf, Arc<PtpClock>)>, Failure> {
        let Some(number) = ethtool::ptp_clock(&link.name) else {
            return Ok(None);
        };
        let path = PathBuf::from(format!("/dev/ptp{number}"));
        if let Some(reader) = self.0.get(&number) {
            return Ok(Some((path, Arc::clone(&reader.clock))));
        }
        let what = || format!("cannot convert the hardware stamps of {}", link.name);
        let device = PtpDevice::open(&path).context(what()).hint(
            "tscap must be able to read the interface's PTP clock: run as root, or let its group \
             read the device",
        )?;
        let reader = Reader::start(device).context(what())?;
        let clock = Arc::clone(&reader.clock);
        self.0.insert(number, reader);
        Ok(Some((path, clock)))
    }

    /// Waits until enough is known of each clock to convert stamps, for a second at most.
    pub async fn settle(&self) {
        let deadline = Instant::now() + KNOWN_WITHIN;
        while !self.are_known() && Instant::now() < deadline {
            tokio::time::sleep(READ_EVERY).await;
        }
    }

    fn are_known(&self) -> bool {
        self.0.values().all(|reader| reader.clock.has_baseline())
    }

    /// Reads each clock once more, and ends.
    pub fn end(&mut self) {
        self.0.clear();
    }
}

impl Reader {
    fn start(mut device: PtpDevice) -> io::Result<Self> {
        let (clock, is_over) = (Arc::<PtpClock>::default(), Arc::<AtomicBool>::default());
        let (to, ends) = (Arc::clone(&clock), Arc::clone(&is_over));
        let thread = std::thread::Builder::new().name("tscap-ptp".into());
        let thread = thread.spawn(move || {
            // The device is open.
            let _ = caps::keep_only(&[]);
            loop {
                let is_last = ends.load(Ordering::Acquire);
                // A device that can't be read gives no times: its frames count as not converted.
                if let Ok(reading) = NicReading::take(&mut device) {
                    to.add(reading);
                }
                if is_last {
                    return;
                }
                std::thread::park_timeout(READ_EVERY);
            }
        })?;
        Ok(Self {
            clock,
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It panics nowhere; and a reading takes some microseconds.
            let _ = thread.join();
        }
    }
}

/// Has the interface stamp every frame if that is wanted, and says what it stamps. Gives what
/// the file says of it, but for its clock.
///
/// # Errors
/// If its receive filter is to be set and can't be.
pub(super) fn choose_filter(
    link: &Link,
    wanted: HardwareStamps,
    changes: &mut SettingsGuard,
    reporter: &mut Reporter<'_>,
) -> Result<HardwareOption, Failure> {
    let name = &link.name;
    if wanted == HardwareStamps::Set && set_filter(link, changes)? {
        reporter.note(&format!(
            "{name}: its receive filter of hardware stamps is set to all for the capture"
        ));
    }
    let filter = ethtool::receive_filter(name);
    let filter = filter.context(format!("cannot take hardware stamps on {name}"))?;
    match filter {
        Some(ReceiveFilter::ALL) | None => {}
        Some(other) => reporter.warning(&format!(
            "{name}: its receive filter of hardware stamps is {}: it stamps no others \
             (--hw-stamps=set sets it to all for the capture)",
            other.name()
        )),
    }
    Ok(HardwareOption {
        clock: None,
        rx_filter: filter.map(ReceiveFilter::name),
    })
}

/// Says whether there was anything to change.
fn set_filter(link: &Link, changes: &mut SettingsGuard) -> Result<bool, Failure> {
    let what = || format!("cannot set the receive filter of {}", link.name);
    let interface = InterfaceId::here(link).context(what())?;
    let all = ReceiveFilter::ALL.name();
    let planned = Change::plan(changes.files(), &interface, Setting::ReceiveFilter, all);
    let change = match planned.context(what())? {
        Planned::Change(change) => change,
        Planned::AsWanted => return Ok(false),
        Planned::Absent => {
            return Err(
                Failure::new(format!("{}: its driver has none", what())).hint(
                    "--hw-stamps without =set takes the stamps that there are, which are none if \
                     the driver gives none",
                ),
            );
        }
    };
    let refused = changes.make(vec![change]);
    let refused = refused.map_err(pinning::journal_failure)?;
    match refused.into_iter().next() {
        Some(refused) => Err(refused.error).context(what()),
        None => Ok(true),
    }
}
