//! How an output is made.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::WriteWatch;
use super::bearing::{Bearing, Pauses};
use super::direct::Direct;
use super::waiting::Waiting;
use super::writeback::Writeback;
use super::{BESIDE_PIECE_BYTES, Io, Output, direct, writeback};
use tscap_host::direct_io::{self};

impl Output {
    /// A stream that can't be truncated, such as a pipe.
    pub fn stream(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Box::new(writer),
            regular: None,
            io: Io::Buffered,
            direct: None,
            base: 0,
            length: 0,
            written: 0,
            written_direct: 0,
            writeback: None,
            news: None,
            bearing: None,
            has_failed: false,
            direct_piece: direct::PIECE_BYTES,
            waiting: Waiting::default(),
            next_address: 0,
            is_alone: false,
            reserve: 0,
            changed: None,
            watch: Arc::default(),
        }
    }

    /// A new, empty file, opened to be appended to.
    ///
    /// # Errors
    /// Of the kind `Unsupported` if it can't be written direct and has to be.
    pub fn regular(file: File, io: Io) -> io::Result<Self> {
        let alignment = match io {
            Io::Buffered => None,
            Io::Auto | Io::Direct => direct_io::alignment(&file),
        };
        if io == Io::Direct && alignment.is_none() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let gives_back = alignment.is_some();
        Ok(Self {
            regular: Some(file.try_clone()?),
            writeback: Some(Arc::new(Writeback::new(file.try_clone()?, gives_back))),
            io,
            direct: alignment.map(Direct::new),
            is_alone: true,
            ..Self::stream(file)
        })
    }

    /// A new, empty file that is written direct, whatever the file system says.
    #[cfg(test)]
    pub(crate) fn direct(file: File) -> Self {
        let alignment = direct_io::alignment(&file);
        let alignment = alignment.unwrap_or(direct_io::Alignment { memory: 512 });
        Self {
            direct: Some(Direct::new(alignment)),
            ..Self::regular(file, Io::Auto).expect("a file")
        }
    }

    /// Its bytes go to this disk as well, which says whether it has them.
    #[cfg(test)]
    pub(crate) fn with_disk(mut self, disk: super::ScriptedDisk) -> Self {
        self.writeback = Some(Arc::new(Writeback::new(disk, false)));
        self
    }

    /// Its disk pauses for so long, as far as is known.
    #[cfg(test)]
    pub(crate) fn expect_pauses(&mut self, longest: std::time::Duration) {
        let (pauses, now) = (Arc::<Pauses>::default(), std::time::Instant::now());
        let shown = std::time::Duration::from_secs(60);
        pauses.observed(shown);
        pauses.took(longest, now);
        self.bearing = Some(Bearing::new(pauses));
    }

    /// A descriptor that somebody else opened, such as standard output. If it is a
    /// file, what stands before its position (or its end, if it is appended to)
    /// stays.
    pub fn inherited(mut file: File) -> io::Result<Self> {
        let data = file.metadata()?;
        let flags = OFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GETFL)?);
        let base = match (data.is_file(), flags.contains(OFlag::O_APPEND)) {
            (false, _) => 0,
            (true, true) => data.len(),
            (true, false) => io::Seek::stream_position(&mut file)?,
        };
        let copy = || data.is_file().then(|| file.try_clone()).transpose();
        let (regular, disk) = (copy()?, copy()?);
        Ok(Self {
            writeback: disk.map(|disk| Arc::new(Writeback::new(disk, false))),
            is_alone: regular.is_some() && data.len() == base,
            regular,
            base,
            ..Self::stream(file)
        })
    }

    /// Lets `watch` see the writes, and end them.
    #[must_use]
    pub fn watched(mut self, watch: Arc<WriteWatch>) -> Self {
        self.watch = watch;
        self
    }

    /// Has the file and those that follow it written out by a thread from here on.
    ///
    /// # Errors
    /// If there can't be another thread.
    pub fn written_out(mut self) -> io::Result<Self> {
        if self.writeback.is_some() {
            let pauses = Arc::<Pauses>::default();
            self.news = Some(writeback::start(Arc::clone(&pauses))?);
            self.bearing = Some(Bearing::new(pauses));
            self.tell_news();
        }
        Ok(self)
    }

    pub(super) fn tell_news(&self) {
        if let (Some(news), Some(writeback)) = (&self.news, &self.writeback) {
            // The thread takes them for as long as there is this end.
            let _ = news.send(Arc::clone(writeback));
        }
    }

    /// The file has got its name in this folder, which is to be on the disk too.
    pub(crate) fn named_in(&self, folder: Option<File>) {
        if let Some(writeback) = &self.writeback {
            writeback.named_in(folder);
            self.tell_news();
        }
    }

    /// Whether there is a disk that is to have what is written.
    pub(crate) fn has_disk(&self) -> bool {
        let file = self.regular.as_ref();
        file.is_some_and(|file| direct_io::is_in_memory(file) != Some(true))
    }

    /// Fits the pieces to rings of so many bytes, and takes the memory for one.
    #[must_use]
    pub(crate) fn out_of_rings(mut self, ring_bytes: usize) -> Self {
        self.direct_piece = direct::piece_of(ring_bytes);
        if let Some(bearing) = &mut self.bearing {
            bearing.ring_bytes = ring_bytes as u64;
        }
        self.waiting.reserve(self.piece() + BESIDE_PIECE_BYTES);
        self
    }

    /// What sees the writes.
    pub(crate) fn watch(&self) -> &Arc<WriteWatch> {
        &self.watch
    }

    /// The file that follows this one, which is [settled](Self::settle), as it is to be written:
    /// `file` is new and empty.
    pub(crate) fn successor(&mut self, file: File) -> io::Result<Self> {
        let mut next = Self::regular(file, self.io)?.watched(Arc::clone(&self.watch));
        next.next_address = self.next_address;
        next.written_direct = self.written_direct;
        next.direct_piece = self.direct_piece;
        next.news = self.news.take();
        next.bearing = self.bearing.take();
        next.reserve(self.reserve)?;
        next.waiting = std::mem::take(&mut self.waiting);
        next.waiting.restart(0);
        self.waiting.restart(self.length);
        Ok(next)
    }
}
