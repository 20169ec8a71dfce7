import type { Preset, Presets } from "../../verify/presets.ts";

/** Renders the page of a provider as Markdown. It explains step by step how to receive webhooks, and lists the weaknesses. */
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
          `- **${escapeMarkdown(secret.label)}**: ${escapeMarkdown(secret.hint)} It is set as \`config.secrets[].value\`.`,
        ]
      : []),
    ...otherSecrets.map(
      ({ name, label, hint }) =>
        `- **${escapeMarkdown(label)}**: ${escapeMarkdown(hint)} It is set under the name \`${name}\`.`,
    ),
  ];
  const facts = [
    ["Verified by", String(preset.verification.scheme)],
    ["Type of an event", pathCell(preset.typePath)],
    ["Id of an event", pathCell(preset.idPath)],
    [
      "Items of a delivery",
      preset.itemsPath === undefined ? "the delivery is one" : pathCell(preset.itemsPath),
    ],
    ["Asked before it sends", handshakes.length > 0 ? "yes: answered by itself" : "no"],
  ];
  return `# ${title}: how do I receive its webhooks?

${escapeMarkdown(preset.description)} At the end of this page a channel takes them.

## Make the channel

Describe it once as a blueprint, with the types of events that you want, and install that ([GitHub](github.md) has all steps with their commands):

\`\`\`json
${JSON.stringify(blueprint, undefined, 2)}
\`\`\`

The install answers the channel's \`url\`. That address is what ${title} is to post to; anyone who knows it can send, so treat it as a secret.

## Set the secret

${secrets.length > 0 ? `Until they are set the channel's state is \`needsSetup\`, and deliveries are answered 401.\n\n${secrets.join("\n")}` : "None is needed."}

## At ${title}

Enter the address where ${title} documents it: <${documentationUrl}>.

${notes.map((note) => `- ${escapeMarkdown(note)}`).join("\n")}

## Where things stand

| | |
|---|---|
${facts.map(([name, value]) => `| ${name} | ${value} |`).join("\n")}

The preset is these settings; what a channel sets itself wins, field by field:

\`\`\`json
${JSON.stringify({ verification: preset.verification, ...(handshakes.length > 0 ? { handshakes } : {}) }, undefined, 2)}
\`\`\`

## A sample

What ${title} sends looks like this, without the parts that prove its origin:

\`\`\`http
${sampleText(preset)}
\`\`\`

## What to know of its weaknesses

${weaknesses(preset)
  .map((line) => `- ${escapeMarkdown(line)}`)
  .join("\n")}
`;
}

/** Formats the sample as an HTTP request. Backticks are indented so that they cannot end the code block. */
function sampleText({ sample }: Preset): string {
  const headers = Object.entries(sample.headers).map(([name, value]) => `${name}: ${value}`);
  const query = new URLSearchParams(sample.query).toString();
  const lines = [`POST /hooks/ch_…${query && `?${query}`}`, ...headers, "", sample.body];
  return lines.join("\n").replaceAll(/^`/gm, " `");
}

/** Escapes text for Markdown. */
const escapeMarkdown = (text: string): string => text.replaceAll(/[\\`*_[\]<>~|:]/g, "\\$&");

const pathCell = (path: string | undefined): string =>
  path === undefined ? "named by no path: set one in your definitions, if there is one" : `\`${path}\``;

function weaknesses({ verification, replays }: Preset): readonly string[] {
  const own = describeWeakness(verification);
  return [own, replays].filter((line) => line !== undefined);
}

function describeWeakness({ scheme, toleranceSeconds }: Preset["verification"]): string | undefined {
  switch (scheme) {
    case "none":
      return "Nothing is signed: the address is the only credential. Rotate it if it leaks.";
    case "token":
      return "A shared secret is sent along and nothing of the content is signed: anyone who reads one delivery can make others.";
    case "jwt":
      return "Each delivery carries a signed token, whose issuer, audience and age are checked.";
    case "anyOf":
      return "It signs in one of several ways; each is as good as its scheme.";
    default:
      return typeof toleranceSeconds === "number"
        ? `The time is signed: a delivery that is more than ${toleranceSeconds} s off is refused.`
        : undefined;
  }
}

/** Renders the table of all providers for the guide on senders. */
export function renderPresetTable(presets: Presets): string {
  const rows = [...presets.values()].map(({ preset, title, verification, secret, handshakes }) =>
    [
      "",
      `[${title}](../verify/presets/${preset}.json)`,
      `\`${preset}\``,
      String(verification.scheme),
      secret?.label ?? "none",
      handshakes.length > 0 ? "yes" : "",
      "",
    ]
      .join(" | ")
      .trim(),
  );
  return [
    "| Provider | `preset` | Verified by | Secret | Asks first |",
    "|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}
