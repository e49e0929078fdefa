//! The broker's process, in a folder of its own that goes with it. It is controller too.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::client::BrokerClient;
use crate::error::BenchError;
use crate::stack::{Child, DataDir};

const JARS: &str = "kafka/jars";
/// The variable that the tests read too.
const JARS_VARIABLE: &str = "WINDROW_KAFKA_JARS";
/// Any 22 characters of URL-safe base64 that are 16 bytes.
const CLUSTER_ID: &str = "d2luZHJvdy1iZW5jaC0xMQ";
/// What Kafka's own scripts start it with.
const JAVA: [&str; 5] =
    ["-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"];
const READY_WITHIN: Duration = Duration::from_secs(120);
const STOPS_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

pub struct Broker {
    child: Child,
    folder: DataDir,
    pub address: String,
}

impl Broker {
    pub fn start() -> Result<Broker, BenchError> {
        let jars = jars()?;
        let folder = DataDir::create()?;
        let [listener, controller] = free_ports()?;
        let properties = folder.write("server.properties", &settings(&folder.path, listener, controller))?;
        format_folder(&jars, &properties)?;
        let log =
            fs::File::create(folder.path.join("broker.log")).map_err(BenchError::io("making the broker's log"))?;
        let errors = log.try_clone().map_err(BenchError::io("making the broker's log"))?;
        let mut command = java(&jars);
        command.args(JAVA).arg("kafka.Kafka").arg(&properties);
        let child = Child::spawn(command.stdin(Stdio::null()).stdout(log).stderr(errors))
            .map_err(BenchError::io("starting the broker"))?;
        let mut broker = Broker { child, folder, address: format!("127.0.0.1:{listener}") };
        broker.wait_until_it_answers()?;
        Ok(broker)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), BenchError> {
        let until = Instant::now() + READY_WITHIN;
        loop {
            let answers = BrokerClient::connect(&self.address).and_then(|mut client| client.brokers());
            if answers.is_ok_and(|brokers| brokers > 0) {
                return Ok(());
            }
            let ended = self.child.inner().try_wait().map_err(BenchError::io("looking after the broker"))?;
            if ended.is_some() || Instant::now() > until {
                let log = fs::read_to_string(self.folder.path.join("broker.log")).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(8)..].join("\n");
                return Err(BenchError::Setup(format!("the broker did not start; its last lines:\n{last}")));
            }
            std::thread::sleep(POLL);
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn stop(mut self) -> Result<(), BenchError> {
        self.child.terminate(STOPS_WITHIN).map(drop).map_err(BenchError::io("stopping the broker"))
    }
}

fn jars() -> Result<PathBuf, BenchError> {
    let folder = std::env::var_os(JARS_VARIABLE).map_or_else(|| PathBuf::from(JARS), PathBuf::from);
    let holds_kafka = fs::read_dir(&folder)
        .is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("kafka_")));
    match holds_kafka {
        true => Ok(folder),
        false => Err(BenchError::Setup(format!(
            "no Kafka in {}: run `make setup-test`, or name its jars' folder in {JARS_VARIABLE}",
            folder.display()
        ))),
    }
}

fn java(jars: &Path) -> Command {
    let mut command = Command::new("java");
    command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn").arg("-cp").arg(jars.join("*"));
    command
}

/// Gives the folder its cluster.
fn format_folder(jars: &Path, properties: &Path) -> Result<(), BenchError> {
    let mut command = java(jars);
    command.args(["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"]).arg(properties);
    let done = command.stdin(Stdio::null()).output().map_err(BenchError::io("starting java"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(BenchError::Setup(format!(
            "the broker's folder was not formatted: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
    }
}

/// Ports that were free a moment ago; held together, so that they differ.
fn free_ports<const N: usize>() -> Result<[u16; N], BenchError> {
    let asking = || BenchError::io("asking for a free port");
    let listeners: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind("127.0.0.1:0").map_err(asking())).collect::<Result<_, BenchError>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(asking())?.port();
    }
    Ok(ports)
}

fn settings(folder: &Path, listener: u16, controller: u16) -> String {
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://127.0.0.1:{listener},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{listener}\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
         log.dirs={}\n\
         auto.create.topics.enable=false\n\
         offsets.topic.replication.factor=1\n\
         offsets.topic.num.partitions=4\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         # Time for all members to come: each that comes later would stop the others.\n\
         group.initial.rebalance.delay.ms=1000\n",
        folder.join("data").display()
    )
}
