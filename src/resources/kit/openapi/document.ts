import packageJson from "../../../../package.json" with { type: "json" };
import { isList, isNonJson } from "../answer.ts";
import type { MountedRoute } from "../mount.ts";
import { errorComponents, errorSchema } from "./errors.ts";
import { HEADERS, PARAMETERS } from "./headers.ts";
import { type DocumentedKinds, withKinds } from "./kinds.ts";
import { documentedPath, toOperation, withExamples } from "./operation.ts";
import { outsidePaths } from "./outside.ts";
import { createSchemaWriter } from "./schemas.ts";
import { describeTags } from "./tags.ts";

const DESCRIPTION = `The management API of Inlet, and the addresses that events are sent to.

Every request carries \`Authorization: Bearer <token>\`, where nothing else is said: an API key, or an access token. What
a request needs is checked in this order: token (401), permission (403), body and query (400), what it names (404),
the state of things (409). What belongs to another organization is answered as what does not exist.

Every success is 200 with a JSON body. Every error has the body \`Error\`. Times are RFC 3339 in UTC with milliseconds.
Lists are bare arrays in order of creation, the full count in \`X-Total-Count\`; \`limit\` (1 to 200) and \`offset\` choose
a part. A PUT is a JSON Merge Patch (RFC 7396): objects merge, arrays replace, null clears a field that
is nullable, and is refused (400) for any other; in other bodies null for an optional field is the same as none.
Free-form values (\`schema\`, \`input\`, \`output\`, \`params\`, \`metadata\`, \`info\`, \`scope\`, the values of records)
are replaced whole, and null inside them is data. Unknown fields of a body and unknown or repeated parameters of a query
are refused (400, naming each); hooks and the OAuth callback take any query. Bodies have 1 MiB at most.

The entity that is asked for is complete. Those inside it carry their own fields; of what would follow in turn one is null and
many are absent, so that no list is shown as empty which is not. A list that holds the newest alone has a count beside it.`;

export interface DocumentDeps {
  readonly routes: readonly MountedRoute[];
  /** The part of the address before `/hooks/{channelId}`. */
  readonly hooksUrl: string;
  /** The channel kinds that this gateway has. */
  readonly kinds: DocumentedKinds;
}

/** The OpenAPI 3.1 document of all that the gateway answers. */
export function createDocument({ routes, hooksUrl, kinds }: DocumentDeps): Readonly<Record<string, unknown>> {
  const schemas = createSchemaWriter();
  schemas.output(errorSchema);
  // Answers take the schemas' names first; a body that differs from its answer gets another name.
  for (const { answer } of routes)
    if (!isNonJson(answer)) schemas.output(isList(answer) ? answer.of : answer);
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = documentedPath(route);
    paths[path] = { ...paths[path], [route.method]: toOperation(route, schemas) };
  }
  const outside = outsidePaths({ schemas, hooksUrl });
  const components = withKinds(schemas.components(), kinds, schemas);
  const documented = withExamples({ ...paths, ...outside }, components);
  return {
    openapi: "3.1.1",
    info: {
      title: "Inlet",
      version: packageJson.version,
      description: DESCRIPTION,
      contact: { name: "The operator of this gateway" },
      license: { name: "Apache 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/v1", description: "This gateway." }],
    security: [{ bearer: [] }],
    tags: describeTags(new Set([...routes.map(({ tag }) => tag), "Hooks", "Operations"])),
    paths: documented,
    components: {
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description:
            "An API key, an access token, or a token of the OpenID Connect issuer that is configured. The live token of a conversation opens what says so, for that conversation.",
        },
      },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: errorComponents(documented),
      schemas: components,
    },
  };
}
