//! Pasted commands, and the way there and back.

use proptest::prelude::*;
use tokdyno_domain::{engine::EngineKind, profile::CommandLine};

use super::{super::quote, *};

fn pasted(text: &str) -> Pasted {
    paste(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn the_founding_command_becomes_a_profile_with_parameters() {
    let text = "# tuned\nexport NCCL_ALGO=Ring   # ring\nNCCL_PROTO=LL CUDA_VISIBLE_DEVICES=0,1 /root/ml-env/bin/python3 -m sglang.launch_server \\\n  --model-path /shared/kimi-k2.5-int4 --tp-size 8 \\\r\n  --host 127.0.0.1 --port 8000 --served-model-name kimi --num-continuous-decode-steps 4 > server.log 2>&1 &\n";
    let Pasted { spec, left_out } = pasted(text);
    assert_eq!(spec.engine, EngineKind::Sglang);
    assert_eq!(spec.program, "/root/ml-env/bin/python3");
    assert_eq!(
        spec.arguments.join(" "),
        "-m sglang.launch_server --model-path {MODEL} --tp-size {TP} --host 127.0.0.1 --port {PORT} --served-model-name {NAME} --num-continuous-decode-steps 4"
    );
    assert_eq!(
        spec.environment,
        pairs(&[
            ("NCCL_ALGO", "Ring"),
            ("NCCL_PROTO", "LL"),
            ("CUDA_VISIBLE_DEVICES", "0,1")
        ])
    );
    let parameters = &spec.parameters;
    assert_eq!(parameters.model, "/shared/kimi-k2.5-int4");
    assert_eq!((parameters.tensor_parallel, parameters.port), (8, 8000));
    assert_eq!(parameters.served_name, "kimi");
    assert_eq!(spec.gpus(), Some(vec![0, 1]));
    assert_eq!(spec.check(), Ok(()));
    for part in ["`> server.log`", "`2>&1`", "`&`"] {
        assert!(
            left_out.iter().any(|said| said.contains(part)),
            "{left_out:?}"
        );
    }
}

#[test]
fn vllms_drafter_is_found_inside_its_json() {
    let text = r#"vllm serve "/m" -tp 2 --speculative-config '{"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}'"#;
    let spec = pasted(text).spec;
    assert_eq!(spec.engine, EngineKind::Vllm);
    assert_eq!(spec.parameters.drafter.as_deref(), Some("/d"));
    assert_eq!(spec.parameters.port, 8000);
    assert_eq!(
        spec.arguments,
        [
            "serve",
            "{MODEL}",
            "-tp",
            "{TP}",
            "--speculative-config",
            r#"{"method": "eagle3", "model": "{DRAFTER}", "num_speculative_tokens": 3}"#
        ]
    );
    assert_eq!(
        spec.command().arguments[5],
        r#"{"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}"#
    );
}

#[test]
fn every_way_to_start_an_engine_is_known() {
    for (line, engine, port) in [
        ("vllm serve m", EngineKind::Vllm, 8000),
        (
            "python -m vllm.entrypoints.openai.api_server --model m",
            EngineKind::Vllm,
            8000,
        ),
        (
            "python3 -m sglang.launch_server --model m",
            EngineKind::Sglang,
            30000,
        ),
        ("sglang serve --model-path m", EngineKind::Sglang, 30000),
        ("tokdyno simulate vllm serve m", EngineKind::Vllm, 8000),
        (
            "./tokdyno simulate sglang --model-path=m --port=7",
            EngineKind::Sglang,
            7,
        ),
        ("llama-server -m m", EngineKind::Other, 8000),
    ] {
        let spec = pasted(line).spec;
        assert_eq!(
            (spec.engine, spec.parameters.port),
            (engine, port),
            "{line}"
        );
        let words: Vec<String> = spec.command().words().map(str::to_owned).collect();
        assert_eq!(words.join(" "), line);
        if engine != EngineKind::Other {
            assert_eq!(spec.parameters.model, "m", "{line}");
        }
    }
}

#[test]
fn only_whole_values_become_parameters() {
    let spec = pasted("vllm serve /m --port 08000 --tensor-parallel-size 0 --max-model-len 8 --x /m --spec-model ''").spec;
    assert_eq!(
        spec.arguments.join(" "),
        "serve {MODEL} --port 08000 --tensor-parallel-size 0 --max-model-len 8 --x /m --spec-model "
    );
    // Of a flag given twice the last holds.
    let twice = pasted("vllm serve /m --port 1 --port 2").spec;
    assert_eq!(
        twice.arguments.join(" "),
        "serve {MODEL} --port 1 --port {PORT}"
    );
    assert_eq!(twice.parameters.port, 2);
    let after = pasted("vllm serve --trust-remote-code /m").spec;
    assert_eq!(after.parameters.model, "/m");
}

#[test]
fn what_prepares_the_command_is_taken_apart_from_it() {
    let text =
        "cd /srv/x && source venv/bin/activate && sudo -E nohup env A=1 exec vllm serve /m &";
    let Pasted { spec, left_out } = pasted(text);
    assert_eq!(spec.program, "vllm");
    assert_eq!(spec.directory.as_deref(), Some("/srv/x"));
    assert_eq!(
        spec.activation,
        Activation::VirtualEnvironment {
            path: "/srv/x/venv".to_owned()
        }
    );
    assert_eq!(spec.environment, pairs(&[("A", "1")]));
    for word in ["`sudo`", "`nohup`", "`exec`", "`&`"] {
        assert!(
            left_out.iter().any(|said| said.contains(word)),
            "{left_out:?}"
        );
    }
    let script = pasted(". /opt/cuda.sh fast; ulimit -n 65535; . /v/bin/activate\nvllm serve /m | tee log || exit 1").spec;
    assert_eq!(
        script.activation,
        Activation::Script {
            text: "source /opt/cuda.sh fast\nulimit -n 65535\nsource /v/bin/activate".to_owned()
        }
    );
    assert_eq!(script.arguments, ["serve", "{MODEL}"]);
}

#[test]
fn variables_of_the_text_are_filled_in_as_a_shell_would() {
    let text = "MODEL=/my/model; export PORT=\"81\"23\nEXTRA='--max-num-seqs 8  --seed 1'\nX=${NOT_SET:-y}\nvllm serve \"$MODEL\" --port ${PORT} $EXTRA --x=\"$X\" '$HOME' \\$HOME";
    let spec = pasted(text).spec;
    assert_eq!(
        spec.command().arguments,
        [
            "serve",
            "/my/model",
            "--port",
            "8123",
            "--max-num-seqs",
            "8",
            "--seed",
            "1",
            "--x=y",
            "$HOME",
            "$HOME"
        ]
    );
    assert_eq!(spec.environment, pairs(&[("PORT", "8123")]));
    let unexported = pasted("NCCL_PROTO=LL\nvllm serve m");
    assert_eq!(unexported.spec.environment, []);
    assert!(
        unexported.left_out[0].contains("not exported"),
        "{:?}",
        unexported.left_out
    );
    let later = pasted("NCCL_PROTO=LL\nexport NCCL_PROTO\nvllm serve m");
    assert_eq!(later.spec.environment, pairs(&[("NCCL_PROTO", "LL")]));
    assert_eq!(later.left_out, [] as [String; 0]);
}

#[test]
fn what_needs_a_shell_is_refused_with_a_sentence() {
    for (text, said) in [
        ("", "no command"),
        ("# only a comment\n\n", "no command"),
        ("export A=1", "no command"),
        ("vllm serve $MODEL", "$MODEL is used"),
        ("M=1 vllm serve $M", "$M is set on the very command"),
        ("vllm serve $(ls)", "runs a command"),
        ("vllm serve `ls`", "runs a command"),
        ("vllm serve \"$(ls)\"", "runs a command"),
        ("vllm serve <(ls)", "runs a command"),
        ("vllm serve <<EOF\nx\nEOF", "feeds lines"),
        ("vllm serve 'm", "never closed"),
        ("vllm serve \"m", "never closed"),
        ("for i in 1 2; do vllm serve m; done", "`for` begins"),
        ("(vllm serve m)", "groups commands"),
        ("vllm serve ~/m", "begins with ~"),
        ("A=~/m vllm serve m", "begins with ~"),
        ("vllm serve ${M:?}", "cannot be filled in"),
        ("vllm serve $1", "`$1` cannot be filled in"),
        ("vllm serve $'\\xff'", "no text"),
        ("vllm serve a\0b", "NUL"),
        ("docker run --gpus all", "names no image"),
        ("docker run some/image --model m", "--entrypoint"),
    ] {
        let error = paste(text).expect_err(text).to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn a_container_becomes_an_activation() {
    let text = "export HF_TOKEN=t\ndocker run -it --rm --gpus all --name prod --ipc=host -e NCCL_PROTO=LL --env NCCL_ALGO -e HF_TOKEN -p 8000:30000 -v /models:/models:ro lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path /models/m --port 30000";
    let Pasted { spec, left_out } = pasted(text);
    assert_eq!(
        spec.activation,
        Activation::Container {
            runtime: "docker".to_owned(),
            image: "lmsysorg/sglang:latest".to_owned(),
            arguments: [
                "--gpus",
                "all",
                "--ipc=host",
                "-p",
                "{PORT}:30000",
                "-v",
                "/models:/models:ro"
            ]
            .map(str::to_owned)
            .to_vec(),
        }
    );
    assert_eq!(
        spec.environment,
        pairs(&[("NCCL_PROTO", "LL"), ("HF_TOKEN", "t")])
    );
    assert_eq!(spec.parameters.port, 8000);
    assert_eq!(
        spec.arguments.join(" "),
        "-m sglang.launch_server --model-path {MODEL} --port 30000"
    );
    assert_eq!(spec.check(), Ok(()));
    for word in ["-it", "--rm", "--name prod", "NCCL_ALGO"] {
        assert!(
            left_out.iter().any(|said| said.contains(word)),
            "{word} {left_out:?}"
        );
    }
    let started = spec.started_command("tokdyno-1");
    assert!(
        started.arguments.join(" ").contains("-p 8000:30000"),
        "{started:?}"
    );
}

#[test]
fn a_containers_own_program_is_named() {
    let vllm =
        pasted("podman run -d --network host vllm/vllm-openai:v0.33.0 --model m --port 9000");
    assert_eq!(vllm.spec.program, "vllm");
    assert_eq!(
        vllm.spec.arguments,
        ["serve", "--model", "{MODEL}", "--port", "{PORT}"]
    );
    assert_eq!(vllm.spec.engine, EngineKind::Vllm);
    assert!(
        vllm.left_out.iter().any(|said| said.contains("vllm serve")),
        "{:?}",
        vllm.left_out
    );
    assert!(
        !vllm.left_out.iter().any(|said| said.contains("published")),
        "{:?}",
        vllm.left_out
    );
    let entry = pasted("docker run -p127.0.0.1:9000:8000/tcp --entrypoint vllm img serve m").spec;
    assert_eq!(
        (entry.program.as_str(), entry.parameters.port),
        ("vllm", 9000)
    );
    let Activation::Container { arguments, .. } = entry.activation else {
        panic!("{:?}", entry.activation);
    };
    assert_eq!(
        arguments,
        ["-p127.0.0.1:{PORT}:8000/tcp", "--entrypoint", ""]
    );
    let same = pasted("docker run -p 8000:8000 img vllm serve m --port 8000").spec;
    let Activation::Container { arguments, .. } = &same.activation else {
        panic!("{:?}", same.activation);
    };
    assert_eq!(arguments.join(" "), "-p {PORT}:{PORT}");
    assert_eq!(same.arguments.join(" "), "serve {MODEL} --port {PORT}");
    let hidden = pasted("docker run img vllm serve m");
    assert!(
        hidden
            .left_out
            .iter()
            .any(|said| said.contains("not published")),
        "{:?}",
        hidden.left_out
    );
}

#[test]
fn of_several_commands_the_server_is_taken() {
    let Pasted { spec, left_out } =
        pasted("nvidia-smi -L; numactl -N 0 vllm serve m && curl http://x/health");
    assert_eq!(spec.program, "numactl");
    assert_eq!(spec.parameters.model, "m");
    assert!(
        left_out.iter().any(|said| said.contains("curl")),
        "{left_out:?}"
    );
}

#[test]
fn quotes_prompts_and_escapes_are_read_as_a_shell_reads_them() {
    let spec = pasted("$ prog a\\ b 'c d'\"e $\"f $'g\\n\\x41\\u00e9\\'' \"\" a\\\nb # end").spec;
    assert_eq!(spec.program, "prog");
    assert_eq!(spec.arguments, ["a b", "c de $f", "g\nAé'", "", "ab"]);
}

#[test]
fn what_a_profile_would_read_otherwise_is_told() {
    for (text, expected) in [
        (
            "vllm serve /m --chat-template '{MODEL}'",
            "`{MODEL}` stands in the text",
        ),
        ("A='x {PORT}' vllm serve /m", "`{PORT}` stands in the text"),
        (
            "bash -c 'vllm serve /m'",
            "`bash -c` starts what stands in its text",
        ),
        (
            "/bin/sh -l -ec 'vllm serve /m'",
            "`sh -c` starts what stands in its text",
        ),
    ] {
        let told = paste(text).expect(text).left_out;
        assert!(
            told.iter().any(|one| one.contains(expected)),
            "{text}: {told:?}"
        );
    }
    for text in [
        "bash start.sh -c x",
        "vllm serve /m --served-model-name '{model}'",
    ] {
        assert_eq!(
            paste(text).expect(text).left_out,
            Vec::<String>::new(),
            "{text}"
        );
    }
}

#[test]
fn a_port_that_cannot_be_is_refused() {
    for port in ["99999", "0", "-1", "http"] {
        let text = format!("vllm serve /m --port={port}");
        assert_eq!(
            paste(&text),
            Err(PasteError::Port(port.to_owned())),
            "{text}"
        );
    }
    assert!(paste("vllm serve /m --port 8000 --x 99999").is_ok());
    assert!(paste("other --port 99999").is_ok());
}

#[test]
fn a_fallback_counts_only_where_the_variable_may_be_unset() {
    for text in ["vllm serve ${HOME:-/x}/m", "vllm serve \"${USER-x}\""] {
        assert!(
            matches!(paste(text), Err(PasteError::Variable(_))),
            "{text}"
        );
    }
    let filled = paste("vllm serve /m --max-model-len ${LEN:-32000}").expect("a command");
    assert_eq!(filled.spec.arguments[3], "32000");
    let set = paste("HOME=/h\nvllm serve ${HOME:-/x}/m").expect("a command");
    assert_eq!(set.spec.parameters.model, "/h/m");
}

/// Words as awkward as can be; never a placeholder, which a profile would fill in.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[^\\x00{]{0,12}",
        2 => "[ \\t\\n'\"\\\\$`#~*?!&|;<>()\\[\\]a=\u{1b}\r-]{0,8}",
        1 => prop::sample::select(super::super::read::special_words().collect::<Vec<_>>())
            .prop_map(str::to_owned),
        1 => prop::sample::select(vec!["--port", "8000", "serve", "vllm", "-e", "--", "-", "a=b", "--x=1", "run"])
            .prop_map(str::to_owned),
        1 => Just("{\"model\":\"/d\"}".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_is_written_is_read_back(
        program in word().prop_filter("a program has a name", |word| !word.is_empty()),
        arguments in proptest::collection::vec(word(), 0..8),
        values in proptest::collection::vec(("[A-Za-z_][A-Za-z0-9_]{0,6}", word()), 0..4),
        directory in proptest::option::of(word().prop_filter("a directory has a name", |word| !word.is_empty())),
    ) {
        let mut environment: Vec<(String, String)> = Vec::new();
        for (name, value) in values {
            if !environment.iter().any(|(other, _)| *other == name) {
                environment.push((name, value));
            }
        }
        let command = CommandLine { program, arguments, environment, directory };
        let text = quote(&command);
        let read = paste(&text).map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        prop_assert_eq!(read.spec.command(), command, "{}", text);
        prop_assert_eq!(read.left_out, Vec::<String>::new(), "{}", text);
    }

    #[test]
    fn odd_names_of_variables_are_read_back_too(
        name in "[^\\x00={]{1,8}", value in word(), program in "[a-z/.]{1,8}",
    ) {
        let command = CommandLine {
            program,
            arguments: vec!["x".to_owned()],
            environment: vec![(name, value)],
            directory: None,
        };
        let text = quote(&command);
        let read = paste(&text).map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        prop_assert_eq!(read.spec.command(), command, "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z $'\"\\\\{}()<>|&;#=\n~-]{0,60}") {
        if let Ok(pasted) = paste(&text) {
            prop_assert!(!pasted.spec.program.is_empty());
        }
    }
}
