import { api, type Schemas } from "../../api/client.ts";
import { reloadApps } from "../../kit/layout/apps.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { AppChannels } from "./app-channels.tsx";
import { Upgrade } from "./upgrade.tsx";

type App = Schemas["App"];

async function blueprints(signal: AbortSignal) {
  const { rows } = await api.list("/blueprints", { query: { limit: 200 }, signal });
  return { blueprintId: rows.map(({ id, title, uid }) => ({ value: id, label: `${title} (${uid})` })) };
}

const SPEC: ResourceSpec<App> = {
  title: "Apps",
  one: "app",
  many: "apps",
  lead: "An app is one install of a blueprint, with its own channels, topics and subscriptions.",
  path: "/apps",
  param: "appId",
  noun: "apps",
  columns: [
    { title: "Name", width: "minmax(0, 2fr)", cell: ({ uid }) => <UntrustedText>{uid}</UntrustedText> },
    {
      title: "Title",
      width: "minmax(0, 2fr)",
      priority: 2,
      cell: ({ title }) => <UntrustedText>{title}</UntrustedText>,
    },
    {
      title: "Created by",
      width: "minmax(0, 1fr)",
      priority: 3,
      cell: ({ isSystem }) => (isSystem ? <Badge>Inlet</Badge> : <span class="soft">you</span>),
    },
    { title: "Installed", width: "9rem", cell: ({ createdAt }) => <Time at={createdAt} as="ago" /> },
  ],
  titleOf: ({ uid }) => uid,
  facts: ({ id, uid, title, description, blueprintId, artifactId, spaceId, createdAt, updatedAt }) => ({
    Id: <Copyable text={id} what="app id" />,
    Name: <UntrustedText>{uid}</UntrustedText>,
    Title: <UntrustedText>{title}</UntrustedText>,
    Description: <UntrustedText>{description}</UntrustedText>,
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
  empty:
    "An app is installed from a blueprint, which describes its channels. Create a blueprint first, then install it here.",
  create: { verb: "Install", path: "/apps/install", choices: blueprints },
  change: {},
  remove: {
    consequence: (
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
