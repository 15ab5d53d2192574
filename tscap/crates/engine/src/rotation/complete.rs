//! The files that are complete and may lose their names yet.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// These files with their frames, by name and in the order in which they ended. There may
/// be thousands of them, and rings wait while one is added or taken out.
#[derive(Debug, Default)]
pub(super) struct Complete {
    files: BTreeMap<u64, (PathBuf, u64)>,
    numbers: HashMap<PathBuf, u64>,
    next: u64,
}

impl Complete {
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Adds one, which has another name than all others.
    pub fn add(&mut self, path: PathBuf, frames: u64) {
        self.numbers.insert(path.clone(), self.next);
        self.files.insert(self.next, (path, frames));
        self.next += 1;
    }

    /// Takes the one of this name out, and gives its frames.
    pub fn take(&mut self, path: &Path) -> Option<u64> {
        let number = self.numbers.remove(path)?;
        self.files.remove(&number).map(|(_, frames)| frames)
    }

    /// Takes the oldest one out.
    pub fn take_oldest(&mut self) -> Option<(PathBuf, u64)> {
        let (_, oldest) = self.files.pop_first()?;
        self.numbers.remove(&oldest.0);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_by_name_or_by_age() {
        let mut complete = Complete::default();
        for (name, frames) in [("a", 1), ("b", 2), ("c", 3)] {
            complete.add(name.into(), frames);
        }
        assert_eq!(complete.take(Path::new("a")), Some(1));
        assert_eq!(complete.take(Path::new("a")), None);
        complete.add("a".into(), 4);
        assert_eq!(complete.len(), 3);
        let ages = std::iter::from_fn(|| complete.take_oldest());
        let ages: Vec<_> = ages.map(|(_, frames)| frames).collect();
        assert_eq!(ages, [2, 3, 4]);
        assert_eq!(complete.take(Path::new("b")), None);
        assert!(
            complete.numbers.is_empty(),
            "nothing is left of what is gone"
        );
    }
}
