import type { Preset } from "../../verify/presets.ts";
import { commandSection } from "./preset-commands.ts";

/** Generates a provider's documentation page, which explains how to receive its webhooks and how weak its verification is. */
export function presetPage(preset: Preset): string {
  const { documentationUrl, notes, secret, otherSecrets, handshakes } = preset;
  const title = escapeMarkdown(preset.title);
  const blueprint = {
    uid: preset.preset,
    title: preset.title,
    channels: [
      {
        uid: "hooks",
        kind: "webhook",
        config: { preset: preset.preset },
        events: [{ type: preset.typePath === undefined ? "received" : "the.type.you.want" }],
      },
    ],
  };
  const secrets = [
    ...(secret
      ? [
          `- **${escapeMarkdown(secret.label)}**: ${escapeMarkdown(secret.hint)} Set it as \`config.secrets[].value\`.`,
        ]
      : []),
    ...otherSecrets.map(
      ({ name, label, hint }) =>
        `- **${escapeMarkdown(label)}**: ${escapeMarkdown(hint)} Set it under the name \`${name}\`.`,
    ),
  ];
  const facts = [
    ["Verified by", String(preset.verification.scheme)],
    ["Type of an event", pathCell(preset.typePath)],
    ["Id of an event", pathCell(preset.idPath)],
    [
      "Items of a delivery",
      preset.itemsPath === undefined ? "the delivery is a single item" : pathCell(preset.itemsPath),
    ],
    ["Handshake", handshakes.length > 0 ? "yes, Inlet responds automatically" : "no"],
  ];
  return `# Receive webhooks from ${title}

${escapeMarkdown(preset.description)}

${commandSection(preset, title)}

## Create the channel

Describe the channel in a blueprint with the event types that you need, then install the blueprint. The [GitHub guide](github.md) shows each step with its commands.

\`\`\`json
${JSON.stringify(blueprint, undefined, 2)}
\`\`\`

The response to the install contains the channel's \`url\`. Configure ${title} to post to this URL. Anyone who knows it can send to it, so treat it as a secret.

## Set the secret

${secrets.length > 0 ? `Until you set all secrets, the channel's state is \`needsSetup\` and deliveries receive 401.\n\n${secrets.join("\n")}` : "No secret is needed."}

## Configure ${title}

Enter the URL as described in the documentation of ${title}: <${documentationUrl}>.

${notes.map((note) => `- ${escapeMarkdown(note)}`).join("\n")}

## Verification and paths

| | |
|---|---|
${facts.map(([name, value]) => `| ${name} | ${value} |`).join("\n")}

The preset consists of these settings. A setting of the channel overrides the same field of the preset:

\`\`\`json
${JSON.stringify({ verification: preset.verification, ...(handshakes.length > 0 ? { handshakes } : {}) }, undefined, 2)}
\`\`\`

## Sample

A request from ${title}, without the parts that prove its origin:

\`\`\`http
${sampleText(preset)}
\`\`\`

${preset.intake === undefined ? "" : `${intakeSection(preset, preset.intake)}\n\n`}${preset.registrations.length > 0 ? `${registrationsSection(preset)}\n\n` : ""}${preset.streams.length > 0 ? `${streamsSection(preset)}\n\n` : ""}## Security

${weaknesses(preset)
  .map((line) => `- ${escapeMarkdown(line)}`)
  .join("\n")}
`;
}

/** Describes how one address receives the events of all customers. */
function intakeSection(
  { preset, title }: Preset,
  { routeBy, itemsPath, trustUnsigned, notes }: NonNullable<Preset["intake"]>,
): string {
  const body = {
    channel: "hooks",
    routeBy,
    ...(trustUnsigned && { trustUnsigned }),
    config: {
      preset,
      ...(itemsPath !== undefined && { itemsPath }),
      ...(trustUnsigned && { verification: { scheme: "preset", bindDedupe: "signedBytes" } }),
    },
  };
  return `## Receive the events of all customers

${escapeMarkdown(title)} sends the events of all customers of your app to one address. [An intake](intakes.md) routes them to the installs of your blueprint:

\`\`\`json
PUT /v1/blueprints/{blueprintId}/intake
${JSON.stringify(body, undefined, 2)}
\`\`\`${notes.length > 0 ? `\n\n${notes.map((note) => `- ${note}`).join("\n")}` : ""}`;
}

/** Describes the lists of the provider's API that a channel can poll. */
function streamsSection({ preset, title, streams }: Preset): string {
  const parts = streams.map((stream) =>
    describeUse(stream, (params) => ({
      uid: stream.name,
      kind: "polling",
      config: { preset, stream: stream.name, ...params },
    })),
  );
  return `## Poll the API of ${escapeMarkdown(title)}\n\nA channel of the kind \`polling\` can read these lists. [Poll a provider](polling-presets.md) shows each step.\n\n${parts.join("\n\n")}`;
}

/** Describes the objects of the provider at which Inlet can register a channel's address. */
function registrationsSection({ preset, title, registrations }: Preset): string {
  const parts = registrations.map((registration, index) =>
    describeUse(registration, (params) => ({
      uid: preset,
      kind: "webhook",
      config: {
        preset,
        registration: {
          connectionId: "con_…",
          ...(index > 0 && { target: registration.target }),
          ...params,
        },
      },
    })),
  );
  return `## Register at ${escapeMarkdown(title)}\n\nInlet can create the webhook and keep it alive. [Keep a webhook alive](registrations.md) shows each step.\n\n${parts.join("\n\n")}`;
}

/** A list of the provider's API, or an object at which a channel can be registered. */
type ApiUse = Pick<Preset["streams"][number], "title" | "description" | "documentationUrl"> &
  Pick<Preset["streams"][number], "connection" | "rateLimit" | "params">;

/** @param toChannel returns an example channel */
function describeUse(
  { title, description, documentationUrl, connection, rateLimit, params }: ApiUse,
  toChannel: (params: { readonly params?: object }) => object,
): string {
  const properties = Object.entries((params.properties ?? {}) as Readonly<Record<string, Param>>);
  const required = (params.required ?? []) as readonly string[];
  const example = Object.fromEntries(
    properties
      .filter(([param]) => required.includes(param))
      .map(([param, { examples }]) => [param, examples?.[0] ?? "…"]),
  );
  const channel = toChannel(properties.length > 0 ? { params: example } : {});
  const rows = properties.map(([param, { title: label = "", description: text = "" }]) => {
    const needed = required.includes(param) ? "" : " Optional.";
    return `| \`${param}\` | ${escapeMarkdown(`${label}. ${text}${needed}`)} |`;
  });
  const facts = [
    connection && `**Connection**: ${connection.kinds.join(" or ")}. ${escapeMarkdown(connection.hint)}`,
    connection &&
      connection.scopes.length > 0 &&
      `**Permissions**: ${escapeMarkdown(connection.scopes.join(", "))}`,
    rateLimit && `**Limit**: ${escapeMarkdown(rateLimit)}`,
    `**Documentation**: <${documentationUrl}>`,
  ].filter((fact) => typeof fact === "string");
  return [
    `### ${escapeMarkdown(title)}`,
    escapeMarkdown(description),
    `\`\`\`json\n${JSON.stringify(channel, undefined, 2)}\n\`\`\``,
    ...(rows.length > 0 ? [["| Parameter | Meaning |", "|---|---|", ...rows].join("\n")] : []),
    facts.map((fact) => `- ${fact}`).join("\n"),
  ].join("\n\n");
}

/** A parameter in a JSON Schema of the preset. */
interface Param {
  readonly title?: string;
  readonly description?: string;
  readonly examples?: readonly unknown[];
}

/** Formats the provider's sample delivery as an HTTP request. Indents backticks, because they would end the code block. */
function sampleText({ sample }: Preset): string {
  const headers = Object.entries(sample.headers).map(([name, value]) => `${name}: ${value}`);
  const query = new URLSearchParams(sample.query).toString();
  const lines = [`POST /hooks/ch_…${query && `?${query}`}`, ...headers, "", sample.body];
  return lines.join("\n").replaceAll(/^`/gm, " `");
}

const escapeMarkdown = (text: string): string => text.replaceAll(/[\\`*_[\]<>~|:]/g, "\\$&");

const pathCell = (path: string | undefined): string =>
  path === undefined ? "not set by the preset: set a path in your definitions" : `\`${path}\``;

function weaknesses({ verification, replays }: Preset): readonly string[] {
  const own = describeWeakness(verification);
  return [own, replays].filter((line) => line !== undefined);
}

function describeWeakness({ scheme, toleranceSeconds }: Preset["verification"]): string | undefined {
  switch (scheme) {
    case "none":
      return "Deliveries are not signed. The URL is the only credential, so rotate it if it leaks.";
    case "token":
      return "A shared secret is sent with each delivery, but the content is not signed. Anyone who reads one delivery can forge others.";
    case "jwt":
      return "Each delivery carries a signed token, whose issuer, audience and age are checked.";
    case "anyOf":
      return "The provider signs in one of several ways. The security depends on the scheme in use.";
    default:
      return typeof toleranceSeconds === "number"
        ? `The timestamp is signed. A delivery whose timestamp differs by more than ${toleranceSeconds} s is rejected.`
        : undefined;
  }
}
