import type { Schemas } from "../../api/client.ts";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { Time } from "../../kit/text/time.tsx";
import { CONNECTION_TONES } from "../../kit/text/tones.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { Authorize } from "./authorize.tsx";
import { loadChoices, ProviderHint } from "./providers.tsx";
import { TestConnection } from "./test-connection.tsx";
import { GRANT_NAMES, KIND_NAMES, STATE_NAMES } from "./words.ts";

const kindOf = ({ kind, config }: Pick<Schemas["Connection"], "kind" | "config">): string =>
  [KIND_NAMES[kind] ?? kind, config.provider].filter(Boolean).join(" · ");

const SPEC: ResourceSpec<Schemas["Connection"]> = {
  title: "Connections",
  one: "connection",
  many: "connections",
  lead: "Credentials that sources and handlers use to call other services. Secrets are write-only.",
  path: "/connections",
  noun: "connections",
  columns: [
    { title: "Name", width: "minmax(0, 2fr)", cell: ({ name }) => name },
    { title: "Kind", width: "14rem", priority: 2, cell: kindOf },
    {
      title: "State",
      width: "8rem",
      cell: ({ state }) => <Badge tone={CONNECTION_TONES[state]}>{STATE_NAMES[state]}</Badge>,
    },
    {
      title: "Last used",
      width: "9rem",
      priority: 3,
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} as="ago" />,
    },
  ],
  titleOf: ({ name }) => name,
  facts: ({ lastError, allowedOrigins, lastUsedAt, createdAt, updatedAt, ...connection }) => ({
    Id: <Copyable text={connection.id} what="connection id" />,
    Name: connection.name,
    Kind: kindOf(connection),
    Grant:
      connection.kind === "oauth2" && GRANT_NAMES[String(connection.config.grant ?? "authorizationCode")],
    State: <Badge tone={CONNECTION_TONES[connection.state]}>{STATE_NAMES[connection.state]}</Badge>,
    "Last error": lastError !== null && (
      <span>
        <code>{lastError.code}</code> <UntrustedText>{lastError.message}</UntrustedText>{" "}
        <Time at={lastError.at} as="ago" />
      </span>
    ),
    "Allowed origins": allowedOrigins.map((origin) => (
      <div key={origin}>
        <UntrustedText>{origin}</UntrustedText>
      </div>
    )),
    "Last used": <Time at={lastUsedAt} as="full" />,
    Created: <Time at={createdAt} as="full" />,
    Changed: <Time at={updatedAt} as="full" />,
  }),
  actions: (connection, reload) => (
    <>
      <Authorize connection={connection} onSignedIn={reload} />
      <TestConnection connection={connection} onDone={reload} />
    </>
  ),
  more: ({ config }) => (
    <Section title="Settings">
      <Code label="settings" text={JSON.stringify(config, null, 2)} />
    </Section>
  ),
  empty: "A source gets an API key, a password or an OAuth sign-in from a connection.",
  create: {
    first: ["config.provider", "config.clientSecret", "config.grant"],
    choices: loadChoices,
    hint: (value) => <ProviderHint value={value} />,
  },
  change: {
    operation: "/connections/{connectionId}",
    without: ["kind"],
    kindOf: ({ kind }) => kind,
    choices: loadChoices,
  },
  remove: { consequence: () => <p>A connection that a channel or a subscription uses cannot be deleted.</p> },
};

export default function Connections() {
  return <ResourceView spec={SPEC} />;
}
