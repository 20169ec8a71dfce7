import packageJson from "../../../../package.json" with { type: "json" };
import { isList, isNonJson } from "../answer.ts";
import type { Deps } from "../deps.ts";
import type { MountedRoute } from "../mount.ts";
import { errorComponents, errorSchema } from "./errors.ts";
import { HEADERS, PARAMETERS } from "./headers.ts";
import { withKinds } from "./kinds.ts";
import { documentedPath, toOperation, withExamples } from "./operation.ts";
import { outsidePaths } from "./outside.ts";
import { createSchemaWriter } from "./schemas.ts";
import { describeTags, groupTags } from "./tags.ts";

const DESCRIPTION = `The management API of Inlet, and the addresses to which events are sent.

**Authentication.** Unless an operation says otherwise, a request needs the header \`Authorization: Bearer <token>\` with an
API key or an access token. Inlet checks a request in this order: token (401), permission (403), body and query (400),
the resources that it names (404), and their state (409). A resource of another organization is reported as missing (404).

**Responses.** A successful response has status 200 and a JSON body. An error has the body \`Error\`. Times are RFC 3339 in
UTC with milliseconds. A list is a JSON array in order of creation. The header \`X-Total-Count\` has the length of the
complete list. The parameters \`limit\` (1 to 200) and \`offset\` select a page. \`/deliveries\`, \`/quarantine\`,
\`/dead-letters\` and \`/sources\` cover all apps, newest item first. They take \`cursor\` instead of \`offset\`: send the
\`X-Next-Cursor\` of a response to get the next page. The last page has none.

**Requests.** Bodies are limited to 1 MiB. Unknown body fields and unknown or repeated query parameters are rejected with
400, and the error names each of them. Hooks and the OAuth callback accept any query. Null for an optional field means the
same as omitting the field.

**Changes.** A PUT is a JSON Merge Patch (RFC 7396). Objects are merged and arrays are replaced. Null clears a nullable field,
and is rejected with 400 for any other field. Free-form values (\`schema\`, \`input\`, \`output\`, \`params\`, \`metadata\`,
\`info\`, \`scope\` and the values of records) are replaced as a whole, and null inside them is data.

**Nested entities.** The requested entity is complete. Entities nested in it have only their own fields. A single entity nested
one level deeper is null, and a list of them is omitted, so that an empty list is always really empty. A list that
contains only the newest items has a field with the total count next to it.`;

export function createDocument(
  routes: readonly MountedRoute[],
  { hooksUrl, channelKinds }: Pick<Deps, "hooksUrl" | "channelKinds">,
): Readonly<Record<string, unknown>> {
  const schemas = createSchemaWriter();
  schemas.output(errorSchema);
  // Convert response schemas first, so that they get the plain names. A different request schema then gets the suffix `Input`.
  for (const { answer } of routes)
    if (!isNonJson(answer)) schemas.output(isList(answer) ? answer.of : answer);
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = documentedPath(route);
    paths[path] = { ...paths[path], [route.method]: toOperation(route, schemas) };
  }
  const outside = outsidePaths({ schemas, hooksUrl });
  const components = withKinds(schemas.components(), channelKinds, schemas);
  const documented = withExamples({ ...paths, ...outside }, components);
  const tags = new Set([...routes.map(({ tag }) => tag), "Hooks", "Operations"]);
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
    tags: describeTags(tags),
    "x-tagGroups": groupTags(tags),
    paths: documented,
    components: {
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description:
            "An API key, an access token, or a token of the configured OpenID Connect issuer. Operations that accept the live token of a conversation say so. That token is valid only for its conversation.",
        },
      },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: errorComponents(documented),
      schemas: components,
    },
  };
}
