import type { Schemas } from "../../api/client.ts";
import { ShownOnce } from "../../kit/feedback/shown-once.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

type Organization = Schemas["Organization"];

const SPEC: ResourceSpec<Organization> = {
  title: "Organization",
  one: "organization",
  many: "organizations",
  lead: "You see your own organization. Members of the operator's organization can create others, but cannot see into them.",
  path: "/organizations",
  noun: "organizations",
  columns: [
    { title: "Name", width: "minmax(0, 2fr)", cell: ({ name }) => name },
    { title: "Id", width: "minmax(0, 2fr)", priority: 2, cell: ({ id }) => <code>{id}</code> },
    {
      title: "Created",
      width: "9rem",
      priority: 2,
      cell: ({ createdAt }) => <Time at={createdAt} as="ago" />,
    },
  ],
  titleOf: ({ name }) => name,
  facts: ({ id, name, iamId, tenantId, createdAt, updatedAt }) => ({
    Id: <Copyable text={id} what="organization id" />,
    Name: name,
    "IAM id": iamId,
    Tenant: tenantId,
    Created: <Time at={createdAt} as="full" />,
    Changed: <Time at={updatedAt} as="full" />,
  }),
  more: (organization) => <Inside organization={organization} />,
  empty: "",
  create: {
    showResult: (answer, onClose) => <Made made={answer as Schemas["NewOrganization"]} onClose={onClose} />,
  },
  change: { operation: "/organizations/{organizationId}" },
};

interface InsideProps {
  readonly organization: Organization;
}

function Inside({ organization: { spaces, roles, members, groups } }: InsideProps) {
  return (
    <>
      <Names title="Spaces" names={spaces.map(({ name }) => name)} />
      <Names title="Roles" names={roles.map(({ name }) => name)} />
      <Names title="Groups" names={groups.map(({ name }) => name)} />
      <Names title="Members" names={members.map(({ accountId }) => accountId)} />
    </>
  );
}

function Names({ title, names }: { readonly title: string; readonly names: readonly string[] }) {
  return (
    <Section title={`${title} (${names.length})`}>
      {names.length === 0 ? (
        <p class="faint">None.</p>
      ) : (
        <p class="row wrap">
          {names.map((name) => (
            <Badge key={name}>
              <UntrustedText max={80}>{name}</UntrustedText>
            </Badge>
          ))}
        </p>
      )}
    </Section>
  );
}

interface MadeProps {
  readonly made: Schemas["NewOrganization"];
  readonly onClose: () => void;
}

function Made({ made: { name, id, apiKey }, onClose }: MadeProps) {
  return (
    <ShownOnce title={`The organization ${name}`} onClose={onClose}>
      <p>
        This is the organization's id and its first API key, with all permissions. The key is shown only once.
      </p>
      <Code label="Organization id" text={id} />
      <Code label="API key" text={apiKey.key} wrap />
    </ShownOnce>
  );
}

export default function OrganizationView() {
  return <ResourceView spec={SPEC} />;
}
