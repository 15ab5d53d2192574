//! Why a program could not be loaded.

use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::{ProgramError, Xdp};

use super::retry::retry_interrupted;
use super::splice::TooLong;
use crate::ring::MapError as RingMapError;
use tscap_filter::translate::TranslateError;

/// Why the program could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The object is not what this build expects.
    #[error("the eBPF object has no {0}")]
    Missing(&'static str),
    /// The object or its maps were refused.
    #[error("cannot load the eBPF object")]
    Object(#[from] EbpfError),
    /// A map could not be set up.
    #[error("cannot set up the eBPF map {map}")]
    Map {
        /// Its name.
        map: &'static str,
        /// Why.
        source: MapError,
    },
    /// The program was refused by the verifier or for lack of privilege.
    #[error("the kernel refused the program {program}")]
    Program {
        /// Its name.
        program: String,
        /// Why, with the verifier's log.
        source: ProgramError,
    },
    /// The filter can't be a part of it.
    #[error("cannot put the filter into the program")]
    Filter(#[from] FilterError),
    /// No descriptor was left for it.
    #[error("cannot hold the program")]
    Descriptor(#[source] io::Error),
    /// A map could not be shared with the programs.
    #[error("cannot map an eBPF map into memory")]
    Memory(#[source] io::Error),
    /// The rings could not be mapped.
    #[error(transparent)]
    Rings(#[from] RingMapError),
}

impl LoadError {
    /// Whether the verifier's log has this word.
    pub fn says(&self, word: &str) -> bool {
        matches!(self, Self::Program { source: ProgramError::LoadError { verifier_log, .. }, .. }
            if verifier_log.to_string().contains(word))
    }

    /// The operating system's error at the root, if there is one.
    pub fn os_error(&self) -> Option<i32> {
        let mut error: &(dyn std::error::Error + 'static) = self;
        loop {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return io.raw_os_error();
            }
            error = error.source()?;
        }
    }
}

/// Why a filter can't be put into a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It has no form that the kernel takes.
    #[error(transparent)]
    Translate(#[from] TranslateError),
    /// It makes the program too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The object is not what this build expects.
    #[error("the eBPF object has no memory for the code in the place of a call")]
    NoScratch,
}

/// Has the kernel verify and load `program`.
pub(crate) fn load_program(program: &mut Xdp, name: &str) -> Result<(), LoadError> {
    retry_interrupted(|| program.load()).map_err(|source| LoadError::Program {
        program: name.to_owned(),
        source,
    })
}
