//! Names of accounts.

use std::{env, fs};

use rustix::process::getuid;

/// The name of an account; its number where no name is known.
pub(super) fn name(uid: u32) -> String {
    fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|text| in_passwd(&text, uid))
        // Accounts of a directory service are in no file; one's own is known.
        .or_else(|| {
            (uid == getuid().as_raw())
                .then(|| env::var("USER").ok())
                .flatten()
        })
        .unwrap_or_else(|| uid.to_string())
}

/// The account that this program runs as.
pub(super) fn own() -> String {
    name(getuid().as_raw())
}

fn in_passwd(text: &str, uid: u32) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_names_in_passwd() {
        let text = "root:x:0:0:root:/root:/bin/bash\nmodel:x:1007:1007::/home/model:/bin/fish\n";
        assert_eq!(in_passwd(text, 1007).as_deref(), Some("model"));
        assert_eq!(in_passwd(text, 7), None);
    }
}
