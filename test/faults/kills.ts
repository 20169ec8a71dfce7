/**
 * Kills processes while ledgers are kept: of the acknowledged deliveries (`hook-kills.ts`) and of the numbered events of
 * sources (`source-kills.ts`). Prints the kills, and fails if an event was lost, doubled or out of order.
 *
 * usage: npm run test:faults -- [kills, half of them for each; default 120]
 */
import { type HookVerdict, runHookKills } from "./hook-kills.ts";
import { runSourceKills, type SourceCounts, type SourceVerdict } from "./source-kills.ts";

const kills = Number(process.argv[2] ?? 120);
const hookKills = Math.floor(kills / 2);
const areHooksWhole = reportHooks(await runHookKills(hookKills));
const areSourcesWhole = reportSources(await runSourceKills({ kills: kills - hookKills }));
if (!areHooksWhole || !areSourcesWhole) process.exitCode = 1;

function reportHooks(verdict: HookVerdict): boolean {
  const { gateways, senders, ledger, entries, lost, doubled } = verdict;
  print([
    `${hookKills} kills in ${verdict.seconds.toFixed(0)} s, ${senders} senders, ${gateways} gateways, one Redis`,
    ...linesOf(verdict.strikes),
    `attempts ${ledger.attempts}, acknowledged ${ledger.acknowledged.size}, entries ${entries}`,
    `lost ${lost.length}, doubled ${doubled.length}, wrong answers ${ledger.wrong.length}`,
    ...[...lost, ...doubled, ...ledger.wrong].slice(0, 10).map((id) => `  ${id}`),
  ]);
  return lost.length + doubled.length + ledger.wrong.length === 0 && ledger.acknowledged.size > 0;
}

function reportSources({ seconds, workers, strikes, sources, quarantined }: SourceVerdict): boolean {
  const sum = (count: (counts: SourceCounts) => number): number =>
    sources.reduce((total, counts) => total + count(counts), 0);
  const kinds = [...new Set(sources.map(({ kind }) => kind))];
  const wrong = sources.filter((counts) => wrongIn(counts) > 0);
  print([
    `${kills - hookKills} kills in ${seconds.toFixed(0)} s, ${workers} workers, one Redis`,
    ...linesOf(strikes),
    ...kinds.map((kind) => {
      const own = sources.filter((counts) => counts.kind === kind);
      const made = own.map((counts) => counts.made);
      return `${own.length} ${kind} sources with ${Math.min(...made)} to ${Math.max(...made)} events each`;
    }),
    `made ${sum(({ made }) => made)}, entries ${sum(({ entries }) => entries)}, quarantined ${quarantined}`,
    `lost ${sum(({ lost }) => lost)}, doubled ${sum(({ doubled }) => doubled)}, out of order ${sum(({ outOfOrder }) => outOfOrder)}, foreign ${sum(({ foreign }) => foreign)}`,
    ...wrong.map((counts) => `  ${JSON.stringify(counts)}`),
  ]);
  return wrong.length === 0 && quarantined === 0 && sources.every(({ made }) => made > 0);
}

function wrongIn({ lost, doubled, outOfOrder, foreign }: SourceCounts): number {
  return lost + doubled + outOfOrder + foreign;
}

function linesOf(strikes: ReadonlyMap<string, number>): readonly string[] {
  return [...strikes].sort().map(([key, count]) => `  ${key.padEnd(18)} ${count}`);
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n\n`);
}
