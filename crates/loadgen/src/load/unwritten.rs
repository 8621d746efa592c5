//! The bytes of requests that wait to be written.

use std::{cell::Cell, rc::Rc};

/// How many bytes wait.
pub(super) type Waiting = Rc<Cell<usize>>;

/// A request's bytes until they are written. Dropped, they no longer count.
#[derive(Debug)]
pub(super) struct Unwritten {
    bytes: Vec<u8>,
    among: Option<Waiting>,
}

impl Unwritten {
    /// Counts them among those that wait.
    pub(super) fn count(&mut self, among: &Waiting) {
        among.set(among.get().saturating_add(self.bytes.len()));
        self.among = Some(Rc::clone(among));
    }
}

impl From<Vec<u8>> for Unwritten {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, among: None }
    }
}

impl AsRef<[u8]> for Unwritten {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        if let Some(among) = &self.among {
            among.set(among.get().saturating_sub(self.bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_no_longer_counts() {
        let waiting = Waiting::default();
        let uncounted = Unwritten::from(vec![0; 7]);
        let mut one = Unwritten::from(vec![0; 10]);
        one.count(&waiting);
        let mut other = Unwritten::from(vec![0; 5]);
        other.count(&waiting);
        assert_eq!((waiting.get(), other.as_ref().len()), (15, 5));
        drop(one);
        drop(uncounted);
        assert_eq!(waiting.get(), 5);
        drop(other);
        assert_eq!(waiting.get(), 0);
    }
}
