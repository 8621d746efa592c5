//! Versions of engines, as far as they must be compared.

/// The numbers of a version; what follows them (`.post1`, `rc1`) is not told apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(Vec<u32>);

impl Version {
    /// Reads `0.5.8.post1`, `v0.33.0`; none if it begins with no number.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in text.trim().trim_start_matches('v').split('.') {
            let digits: &str = &part[..part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len())];
            let Ok(number) = digits.parse() else { break };
            numbers.push(number);
            if digits.len() < part.len() || numbers.len() == 4 {
                break;
            }
        }
        // 0.33 and 0.33.0 are one version.
        while numbers.len() > 1 && numbers.last() == Some(&0) {
            numbers.pop();
        }
        (!numbers.is_empty()).then_some(Self(numbers))
    }

    /// Is it this one or a later one?
    pub(crate) fn at_least(&self, numbers: &[u32]) -> bool {
        self.0.as_slice() >= trimmed(numbers)
    }

    /// Is it this one or an earlier one?
    pub(crate) fn at_most(&self, numbers: &[u32]) -> bool {
        self.0.as_slice() <= trimmed(numbers)
    }
}

fn trimmed(mut numbers: &[u32]) -> &[u32] {
    while let [rest @ .., 0] = numbers
        && !rest.is_empty()
    {
        numbers = rest;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let read = |text| Version::read(text).expect(text);
        assert!(read("0.5.8.post1").at_most(&[0, 5, 9]));
        assert!(read("0.5.23").at_least(&[0, 5, 9]));
        assert!(read("v0.33.0").at_least(&[0, 33]) && read("0.33").at_most(&[0, 33, 0]));
        assert!(!read("0.5.9rc1").at_least(&[0, 5, 10]));
        assert_eq!(Version::read("main"), None);
        assert_eq!(Version::read(""), None);
    }
}
