//! A throw-away `sshd` for tests of other languages: prints where it is as one line
//! of JSON and runs until its standard input closes.
//!
//! `test_sshd [SHELL]`

use std::io::{self, Read};

use tokdyno_remote::testing::TestSshd;

fn main() -> io::Result<()> {
    let shell = std::env::args().nth(1);
    let sshd = TestSshd::with_shell(shell.as_deref().unwrap_or("/bin/bash"))?;
    println!(
        "{}",
        serde_json::json!({
            "port": sshd.port(),
            "ssh_config": sshd.ssh_config(),
            "destination": sshd.destination(),
            "home": sshd.home(),
        })
    );
    let mut rest = Vec::new();
    io::stdin().read_to_end(&mut rest)?;
    Ok(())
}
