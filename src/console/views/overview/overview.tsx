import { useAppId } from "../../kit/layout/apps.tsx";
import { Page, Section } from "../../kit/layout/page.tsx";
import { useAddress } from "../../kit/list/address.ts";
import { hasPermission } from "../../session/session.ts";
import { AppFigures } from "./app-figures.tsx";
import { BusyChannels } from "./busy-channels.tsx";
import { GatewayFacts } from "./gateway-facts.tsx";
import { OpenProblems } from "./open-problems.tsx";
import { OrganizationFigures } from "./organization-figures.tsx";
import { RANGES, useRange } from "./range.ts";
import { Throughput } from "./throughput.tsx";
import "./overview.css";

export default function Overview() {
  const appId = useAppId();
  const range = useRange();
  const readsMetrics = hasPermission("metrics.read");
  return (
    <Page title="Overview" actions={readsMetrics && <RangeChoice />}>
      {hasPermission("problems.read") && <OpenProblems />}
      {readsMetrics && (
        <Section title={`All apps, ${range.title.toLowerCase()}`}>
          <Throughput appId={undefined} range={range} hasChart />
        </Section>
      )}
      {readsMetrics && <BusyChannels range={range} />}
      {hasPermission("overview.read") && <OrganizationFigures appId={appId} />}
      <GatewayFacts />
      {appId !== undefined && <AppFigures key={appId} appId={appId} range={range} />}
    </Page>
  );
}

function RangeChoice() {
  const { hrefWith } = useAddress();
  const chosen = useRange();
  return (
    <nav class="segments" aria-label="Time range">
      {RANGES.map((range) => (
        <a
          key={range.name}
          href={hrefWith({ range: range.name })}
          title={range.title}
          aria-current={range === chosen ? "true" : undefined}
        >
          {range.label}
        </a>
      ))}
    </nav>
  );
}
