//! The reader.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::calculation::{self, Difference, Refused, State, Times, Witness};
use crate::layout::{Header, Latest, Page};
use crate::system::{self, Mapping};

/// Where `tscap clock --serve` has its page unless it is told another place.
pub const DEFAULT_PATH: &str = "/run/tscap_clock/clock";

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Why there is no page.
#[derive(Debug)]
pub enum OpenError {
    /// The file can't be opened or mapped, or is not as long as a page.
    Io(io::Error),
    /// It is no page, or one of another version.
    NoPage,
    /// It was written before the machine booted, or by another machine.
    OtherBoot,
    /// Its counter is another one than this program reads.
    OtherCounter,
}

impl fmt::Display for OpenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(out, "cannot map the clock's page: {error}"),
            Self::NoPage => out.write_str("the file is no clock's page of this version"),
            Self::OtherBoot => out.write_str("the page is of another boot of the machine"),
            Self::OtherCounter => out.write_str("the page is of another counter"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A clock that is read from shared memory.
///
/// Where its page is stale, void or closed, the file is opened again, ten times a second at most:
/// a `tscap clock --serve` that was started again has another one.
#[derive(Debug)]
pub struct Clock {
    path: PathBuf,
    boot_id: [u8; 16],
    mapping: Mapping,
    header: Header,
    /// CLOCK_MONOTONIC from which on the file may be opened again, ns.
    next_open_ns: u64,
}

/// Between two tries to open the file again, ns.
const OPEN_EVERY_NS: u64 = 100_000_000;
/// Tries where the kernel's clocks contradict the page: the program may have been interrupted
/// between its reads.
const TRIES: usize = 3;

impl Clock {
    /// Opens the page at `path`.
    ///
    /// # Errors
    /// If there is none that this program can use.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let boot_id = boot_id()?;
        let (mapping, header) = map(&path, &boot_id)?;
        Ok(Self {
            path,
            boot_id,
            mapping,
            header,
            next_open_ns: 0,
        })
    }

    /// The header of the page in use.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The present.
    ///
    /// # Errors
    /// [`Refused`] says why there is none.
    #[inline]
    pub fn now(&mut self) -> Result<Times, Refused> {
        if let Some((latest, witness)) = self.look()
            && let Ok(times) = calculation::at_or_behind(&latest, witness.raw)
            && times.state != State::Stale
            && calculation::confirm(&latest, &witness).is_ok()
        {
            return Ok(times);
        }
        self.carefully(|clock| {
            let (latest, raw) = clock.confirmed()?;
            calculation::at_or_behind(&latest, raw)
        })
    }

    /// The times of a counter value from the past.
    ///
    /// # Errors
    /// [`Refused`] says why there are none.
    pub fn of_raw(&mut self, raw: u64) -> Result<Times, Refused> {
        self.carefully(|clock| {
            let (page, now) = clock.confirmed_page()?;
            calculation::of_raw(&page, now, raw)
        })
    }

    /// The times of a CLOCK_REALTIME stamp from the past, ns since 1970, such as those of
    /// SO_TIMESTAMPING.
    ///
    /// # Errors
    /// [`Refused`] says why there are none.
    pub fn of_real(&mut self, real_ns: u64) -> Result<Times, Refused> {
        self.carefully(|clock| {
            let (page, now) = clock.confirmed_page()?;
            calculation::of_real(&page, now, real_ns)
        })
    }

    /// The time from one counter value to another, negative if the second one is earlier.
    ///
    /// # Errors
    /// [`Refused`] says why there is none.
    pub fn between(&mut self, from: u64, until: u64) -> Result<Difference, Refused> {
        self.carefully(|clock| {
            let (latest, now) = clock.confirmed()?;
            calculation::between(&latest, now, from, until)
        })
    }

    /// All that the page says, and the counter.
    ///
    /// # Errors
    /// [`Refused::Busy`].
    pub fn page(&self) -> Result<(Page, u64), Refused> {
        let read = self.mapping.whole(system::read_counter);
        let (words, raw) = read.ok_or(Refused::Busy)?;
        Ok((Page::from_words(&words), raw))
    }

    #[inline]
    fn look(&self) -> Option<(Latest, Witness)> {
        let (words, witness) = self.mapping.latest(system::coarse)?;
        Some((Latest::from_words(&words), witness))
    }

    /// The state and the counter, which the kernel's clocks confirm.
    fn confirmed(&self) -> Result<(Latest, u64), Refused> {
        confirmed(|| {
            let read = self.mapping.latest(system::precise);
            let (words, witness) = read.ok_or(Refused::Busy)?;
            let latest = Latest::from_words(&words);
            let confirmed = calculation::confirm(&latest, &witness);
            Ok(((latest, witness.raw), confirmed))
        })
    }

    fn confirmed_page(&self) -> Result<(Page, u64), Refused> {
        confirmed(|| {
            let read = self.mapping.whole(system::precise);
            let (words, witness) = read.ok_or(Refused::Busy)?;
            let page = Page::from_words(&words);
            let confirmed = calculation::confirm(&page.latest, &witness);
            Ok(((page, witness.raw), confirmed))
        })
    }

    /// Again with a page that has taken the place of this one.
    #[cold]
    fn carefully<T>(&mut self, read: impl Fn(&Self) -> Result<T, Refused>) -> Result<T, Refused> {
        let is_stale = self.look().is_none_or(|(latest, witness)| {
            let times = calculation::at_or_behind(&latest, witness.raw);
            times.is_ok_and(|times| times.state == State::Stale)
        });
        let result = read(self);
        let is_over = matches!(
            result,
            Err(Refused::Closed | Refused::Void | Refused::Garbage | Refused::Jumped)
        );
        if (is_stale || is_over) && self.open_again() {
            return read(self);
        }
        result
    }

    /// Opens the file again; says whether it is another one.
    fn open_again(&mut self) -> bool {
        let [now, _] = system::precise().mono_ns;
        if now < self.next_open_ns {
            return false;
        }
        self.next_open_ns = now + OPEN_EVERY_NS;
        let Ok((mapping, header)) = map(&self.path, &self.boot_id) else {
            return false;
        };
        let is_other = header != self.header;
        if is_other {
            (self.mapping, self.header) = (mapping, header);
        }
        is_other
    }
}

fn confirmed<T>(
    read: impl Fn() -> Result<(T, Result<(), Refused>), Refused>,
) -> Result<T, Refused> {
    let mut last = Refused::Busy;
    for _ in 0..TRIES {
        let (found, confirmed) = read()?;
        match confirmed {
            Ok(()) => return Ok(found),
            Err(refused) => last = refused,
        }
    }
    Err(last)
}

fn map(path: &Path, boot_id: &[u8; 16]) -> Result<(Mapping, Header), OpenError> {
    let mapping = Mapping::of(&File::open(path)?)?;
    let header = Header::from_words(&mapping.header()).ok_or(OpenError::NoPage)?;
    if header.boot_id != *boot_id {
        return Err(OpenError::OtherBoot);
    }
    if header.counter != system::KIND {
        return Err(OpenError::OtherCounter);
    }
    Ok((mapping, header))
}

/// Which boot of the machine this is.
///
/// # Errors
/// If the kernel does not say so.
pub fn boot_id() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string(BOOT_ID)?;
    parsed(&text).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{BOOT_ID} has no identity"),
        )
    })
}

/// Of `01234567-89ab-cdef-0123-456789abcdef`.
fn parsed(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<_> = text.trim().chars().filter(|it| *it != '-').collect();
    let mut bytes = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = [pair[0].to_digit(16)?, pair[1].to_digit(16)?];
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
