//! Connections that do nothing: what each costs the gateway in memory.

use super::goals::Goals;
use super::{megabytes, Part};
use crate::error::BenchError;
use crate::load::Exchange;
use crate::process::{raise_open_files, usage};
use crate::report::{figure, Section, Table};
use crate::stack::{Stack, StackOptions};

/// Opened one after the other in groups that no backlog refuses.
const OPENED_AT_ONCE: usize = 100;

#[derive(Debug, Clone, clap::Args)]
pub struct IdleOptions {
    #[arg(long, default_value_t = 5000)]
    pub connections: usize,
}

impl Part for IdleOptions {
    fn measure(&self, stack: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let gateway = stack.require_gateway()?;
        let pid = stack.gateway_pid().ok_or_else(|| BenchError::Setup("add --gateway-pid PID".into()))?;
        let limit = raise_open_files();
        if limit < self.connections as u64 + 100 {
            return Err(BenchError::Setup(format!(
                "only {limit} files may be open: raise `ulimit -n` or use fewer connections"
            )));
        }
        let before = usage(pid).resident_bytes;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BenchError::io("starting the connections"))?;
        let open = runtime.block_on(self.open(&Exchange::new(gateway.endpoint(), "query=SELECT%201")))?;
        let after = usage(pid).resident_bytes;
        drop(open);
        let mut table = Table::new(["idle connections", "before, MB", "with them, MB", "per connection, kB"]);
        table.row([
            figure(self.connections as f64),
            figure(megabytes(before)),
            figure(megabytes(after)),
            figure(after.saturating_sub(before) as f64 / 1000.0 / self.connections as f64),
        ]);
        let mut goals = Goals::new();
        goals.at_most("the gateway with 5,000 idle connections, MB", 150.0, megabytes(after));
        Ok(Section {
            name: "idle",
            title: "Idle connections",
            command: format!("bench/run idle --connections {}", self.connections),
            body: format!("Each had sent one query and stayed.\n\n{}\n{}", table.to_markdown(), goals.to_markdown()),
            charts: Vec::new(),
        })
    }
}

impl IdleOptions {
    /// Every connection asks for something once, so that the gateway has made whatever it keeps for one.
    pub async fn open(&self, template: &Exchange) -> Result<Vec<Exchange>, BenchError> {
        let mut open: Vec<Exchange> = Vec::with_capacity(self.connections);
        while open.len() < self.connections {
            let group = OPENED_AT_ONCE.min(self.connections - open.len());
            let tasks: Vec<_> = (0..group)
                .map(|_| {
                    let mut exchange = template.another();
                    tokio::spawn(async move { exchange.post(b"").await.map(|answer| (exchange, answer)) })
                })
                .collect();
            for task in tasks {
                let (exchange, answer) =
                    task.await.map_err(|_| BenchError::Setup("a connection's task was cancelled".into()))??;
                if let Some(text) = answer.error {
                    return Err(BenchError::Refused {
                        what: "an idle connection's query".into(),
                        status: answer.status,
                        text,
                    });
                }
                open.push(exchange);
            }
        }
        Ok(open)
    }
}
