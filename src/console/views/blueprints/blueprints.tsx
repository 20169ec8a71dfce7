import type { Schemas } from "../../api/client.ts";
import { Section } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { Time } from "../../kit/text/time.tsx";

const SPEC: ResourceSpec<Schemas["Blueprint"]> = {
  title: "Blueprints",
  one: "blueprint",
  many: "blueprints",
  lead: "A blueprint describes an app and its channels. An installed app is a copy: upgrade it to apply later changes.",
  path: "/blueprints",
  noun: "blueprints",
  columns: [
    { title: "Title", width: "minmax(0, 2fr)", cell: ({ title }) => title },
    { title: "Name", width: "minmax(0, 2fr)", priority: 2, cell: ({ uid }) => uid },
    { title: "Channels", width: "6rem", align: "end", cell: ({ channels }) => channels.length },
    {
      title: "Changed",
      width: "9rem",
      priority: 2,
      cell: ({ updatedAt }) => <Time at={updatedAt} as="ago" />,
    },
  ],
  titleOf: ({ title }) => title,
  facts: ({ id, uid, title, description, createdAt, updatedAt }) => ({
    Id: <Copyable text={id} what="blueprint id" />,
    Name: uid,
    Title: title,
    Description: description,
    Created: <Time at={createdAt} as="full" />,
    Changed: <Time at={updatedAt} as="full" />,
  }),
  more: ({ channels }) => (
    <Section title="Channels">
      {channels.length === 0 ? (
        <p class="faint">None.</p>
      ) : (
        channels.map((channel) => (
          <Code
            key={channel.uid}
            label={`${channel.uid} (${channel.kind})`}
            text={JSON.stringify(channel, null, 2)}
          />
        ))
      )}
    </Section>
  ),
  actions: ({ id }) => (
    <a class="button" href={`/console/blueprints/${id}/intake`}>
      Intake
    </a>
  ),
  empty: "Define the channels of an app: the origin of its events, and how deliveries become events.",
  create: {},
  change: { operation: "/blueprints/{blueprintId}" },
  remove: { consequence: () => <p>Installed apps stay unchanged, but can no longer be upgraded.</p> },
};

export default function Blueprints() {
  return <ResourceView spec={SPEC} />;
}
