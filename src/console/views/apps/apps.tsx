import { api, type Schemas } from "../../api/client.ts";
import { reloadApps } from "../../kit/layout/apps.tsx";
import { Health } from "../../kit/layout/health.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatCount, formatRate } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { AppChannels } from "./app-channels.tsx";
import { Upgrade } from "./upgrade.tsx";

type App = Schemas["App"];
type Summary = Schemas["AppSummary"];

async function blueprints(signal: AbortSignal) {
  const { rows } = await api.list("/blueprints", { query: { limit: 200 }, signal });
  return { blueprintId: rows.map(({ id, title, uid }) => ({ value: id, label: `${title} (${uid})` })) };
}

const SPEC: ResourceSpec<App, Summary> = {
  title: "Apps",
  one: "app",
  many: "apps",
  lead: "An app is one install of a blueprint, with its own channels, topics and subscriptions.",
  path: "/apps",
  listPath: "/apps/summaries",
  noun: "apps",
  columns: [
    {
      title: "Name",
      width: "minmax(0, 2fr)",
      cell: ({ uid, isSystem }) => (
        <>
          <UntrustedText>{uid}</UntrustedText> {isSystem && <Badge>built in</Badge>}
        </>
      ),
    },
    { title: "Title", width: "minmax(0, 2fr)", priority: 3, cell: ({ title }) => title },
    { title: "Health", width: "6.5rem", cell: (app) => <Health app={app} /> },
    {
      title: "Last event",
      width: "6.5rem",
      narrowWidth: "5.5rem",
      cell: ({ lastEventAt }) => <Time at={lastEventAt} as="ago" />,
    },
    {
      title: "Channels",
      width: "5rem",
      align: "end",
      priority: 2,
      cell: ({ id, channels }) => (
        <MaybeLink href={viewHref("/apps/:appId/channels", { appId: id })}>{formatCount(channels)}</MaybeLink>
      ),
    },
    {
      title: "Events/min",
      width: "6rem",
      align: "end",
      priority: 2,
      cell: ({ eventsPerMinute }) =>
        eventsPerMinute === null ? <span class="faint">–</span> : formatRate(eventsPerMinute),
    },
    {
      title: "Quarantined",
      width: "6rem",
      align: "end",
      priority: 2,
      cell: ({ id, quarantined }) =>
        quarantined === null || quarantined === 0 ? (
          <span class="faint">{quarantined ?? "–"}</span>
        ) : (
          <MaybeLink href={viewHref("/quarantine", {}, { app: id })}>{formatCount(quarantined)}</MaybeLink>
        ),
    },
  ],
  titleOf: ({ uid }) => uid,
  facts: ({ id, uid, title, description, blueprintId, artifactId, spaceId, createdAt, updatedAt }) => ({
    Id: <Copyable text={id} what="app id" />,
    Name: uid,
    Title: title,
    Description: description,
    Blueprint:
      blueprintId === null ? "–" : <a href={`/console/blueprints?id=${blueprintId}`}>{blueprintId}</a>,
    Artifact: artifactId ?? false,
    Space: spaceId ?? "–",
    Installed: <Time at={createdAt} as="full" />,
    Changed: <Time at={updatedAt} as="full" />,
  }),
  more: ({ id }) => <AppChannels appId={id} />,
  actions: ({ id, uid, isSystem }, reload) =>
    isSystem ? null : <Upgrade appId={id} name={uid} onDone={reload} />,
  filters: [{ name: "search", label: "Search", kind: "text", placeholder: "title or name" }],
  empty:
    "An app is installed from a blueprint, which describes its channels. Create a blueprint first, then install it here.",
  create: { button: "Install", path: "/apps/install", choices: blueprints },
  change: { operation: "/apps/{appId}" },
  remove: {
    consequence: () => (
      <p>
        Its channels stop within two seconds. Its subscriptions, cursors, quarantined items and secrets are
        deleted. Its events stay until retention removes them.
      </p>
    ),
  },
  onChanged: () => void reloadApps().catch(() => {}),
};

export default function Apps() {
  return <ResourceView spec={SPEC} />;
}
