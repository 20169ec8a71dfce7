import { api, type Schemas } from "../../api/client.ts";
import { ShownOnce } from "../../kit/feedback/shown-once.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { Time } from "../../kit/text/time.tsx";

type ApiKey = Schemas["ApiKey"];

/** Loads the names of permissions and roles for the form, because the form's schema does not list them. */
async function grants(signal: AbortSignal) {
  const query = { limit: 200 };
  const [permissions, roles, accounts, spaces] = await Promise.all([
    api.list("/iam/permissions", { query, signal }),
    api.list("/iam/roles", { query, signal }),
    api.list("/iam/accounts", { query, signal }),
    api.list("/spaces", { query, signal }).catch(() => ({ rows: [] })),
  ]);
  const named = (rows: readonly { readonly id: string; readonly name: string }[]) =>
    rows.map(({ id, name }) => ({ value: id, label: name }));
  return {
    permissions: permissions.rows.map(({ name }) => ({ value: name, label: name })),
    accountId: named(accounts.rows),
    ...(roles.rows.length > 0 ? { roleIds: named(roles.rows) } : {}),
    ...(spaces.rows.length > 0 ? { defaultSpaceId: named(spaces.rows) } : {}),
  };
}

const SPEC: ResourceSpec<ApiKey> = {
  title: "API keys",
  one: "API key",
  many: "API keys",
  lead: "A key is shown once and stored as a hash. If you delete a key, all gateways reject it within five seconds.",
  path: "/iam/api-keys",
  noun: "iam",
  columns: [
    { title: "Name", width: "minmax(0, 2fr)", cell: ({ name }) => name },
    { title: "Starts with", width: "8rem", priority: 2, cell: ({ prefix }) => <code>{prefix ?? "–"}</code> },
    { title: "Permissions", width: "minmax(0, 2fr)", priority: 3, cell: (key) => <Grants of={key} /> },
    {
      title: "Ends",
      width: "9rem",
      cell: ({ expiresAt }) =>
        expiresAt === null ? <span class="faint">never</span> : <Time at={expiresAt} as="ago" />,
    },
  ],
  titleOf: ({ name }) => name,
  facts: (key) => ({
    Id: <Copyable text={key.id} what="key id" />,
    Name: key.name,
    "Starts with": <code>{key.prefix ?? "–"}</code>,
    Permissions: <Grants of={key} whole />,
    Account: key.accountId,
    "Created by": key.createdById ?? "–",
    "Default space": key.defaultSpaceId ?? "–",
    Expires: key.expiresAt === null ? "never" : <Time at={key.expiresAt} as="full" />,
    Created: <Time at={key.createdAt} as="full" />,
    Changed: <Time at={key.updatedAt} as="full" />,
  }),
  empty: "Every API client needs a key.",
  create: {
    choices: grants,
    first: ["permissions", "roleIds", "expiresAt"],
    showResult: (answer, onClose) => <NewKey made={answer as Schemas["NewApiKey"]} onClose={onClose} />,
  },
  change: { operation: "/iam/api-keys/{apiKeyId}", choices: grants },
  remove: {
    verb: "Revoke",
    consequence: () => <p>Requests with this key are rejected from now on. You cannot undo this.</p>,
  },
};

interface GrantsProps {
  readonly of: ApiKey;
  readonly whole?: boolean;
}

function Grants({ of: { permissions, roleIds }, whole = false }: GrantsProps) {
  const shown = whole ? permissions : permissions.slice(0, 3);
  return (
    <span class={whole ? "row wrap" : "row"}>
      {shown.map((name) => (
        <Badge key={name} tone={name === "*" ? "warn" : "plain"}>
          {name === "*" ? "everything" : name}
        </Badge>
      ))}
      {permissions.length > shown.length && (
        <span class="faint">and {permissions.length - shown.length} more</span>
      )}
      {roleIds.length > 0 && (
        <span class="faint">{roleIds.length === 1 ? "1 role" : `${roleIds.length} roles`}</span>
      )}
      {permissions.length + roleIds.length === 0 && <span class="faint">nothing</span>}
    </span>
  );
}

interface NewKeyProps {
  readonly made: Schemas["NewApiKey"];
  readonly onClose: () => void;
}

function NewKey({ made: { name, key }, onClose }: NewKeyProps) {
  return (
    <ShownOnce title={`The key ${name}`} onClose={onClose}>
      <p>The key is shown only once. Store it in a safe place.</p>
      <Code label="API key" text={key} wrap />
    </ShownOnce>
  );
}

export default function ApiKeys() {
  return <ResourceView spec={SPEC} />;
}
