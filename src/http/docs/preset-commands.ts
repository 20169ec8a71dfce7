import { quoteWord } from "../../lib/quote-word.ts";
import type { Preset } from "../../verify/presets.ts";

/** Works in any folder. Outside of a clone, `npx inlet` would run an unrelated package of that name. */
const PROGRAM = "npx inlet-gateway";

/** Arguments of `inlet receive` for a preset: its webhooks, then its registrations, then its lists. */
export function listReceiveArguments({
  preset,
  secret,
  registrations,
  streams,
}: Preset): readonly (readonly string[])[] {
  return [
    [preset, ...(secret === null ? [] : ["--secret", "@secret.txt"])],
    ...registrations.map(({ target, params, connection }, index) => [
      preset,
      ...exampleParams(params),
      ...(index > 0 ? ["--target", target] : []),
      ...credentials(connection),
    ]),
    ...streams.map(({ name, params, connection }, index) => [
      "poll",
      preset,
      ...exampleParams(params),
      ...(index > 0 ? ["--stream", name] : []),
      ...credentials(connection),
    ]),
  ];
}

/** Describes how to receive a provider's events with one command, by hand or by an agent. Texts must be escaped. */
export function commandSection(preset: Preset, title: string): string {
  const lines = listReceiveArguments(preset).map(
    (words) => `${PROGRAM} receive ${words.map(quoteWord).join(" ")}`,
  );
  return `## Set up ${title} with one command

Each of these commands creates an app with a channel, sends a test event if it can, and shows the events ([Receive
events](command-line.md#receive-events)):

\`\`\`
${lines.join("\n")}
\`\`\`
${describeToken(preset)}
## Set up ${title} with an agent

Give this text to an agent that can run commands on your machine:

\`\`\`
${composePrompt(preset)}
\`\`\``;
}

/** Describes the content of token.txt if the provider uses basic authentication. */
function describeToken({ registrations, streams }: Preset): string {
  const kinds: readonly string[] = [...registrations, ...streams].flatMap(
    ({ connection }) => connection?.kinds ?? [],
  );
  if (!kinds.includes("basic")) return "";
  const bearer = kinds.includes("bearer") ? ", or a bearer token" : "";
  return `\nThe file token.txt contains \`user:password\`${bearer}.\n`;
}

function composePrompt(preset: Preset): string {
  const { preset: name, title, secret, otherSecrets, documentationUrl } = preset;
  const [words = []] = listReceiveArguments(preset);
  const steps = [
    ...(secret === null
      ? []
      : [
          `Ask me for this secret of ${title}: ${secret.label}. ${secret.hint} If ${title} shows it only after it has the address, do this step later. Save the secret as secret.txt, readable only by me, and never print it.`,
        ]),
    `Run: ${PROGRAM} receive ${words.map(quoteWord).join(" ")} --once --yes --json. Each line of the output is a step. The last one contains eventId and topic.`,
    "If the command fails, read its message, fix the cause, and run it again. It finds the app and the channel of the first run.",
    ...otherSecrets.map(
      ({ name: one, label, hint }) =>
        `Ask me for ${label}. ${hint} Set it as a secret of the channel with the name ${one}.`,
    ),
    `Tell me the address in the step "address", and explain how I enter it at ${title}, as described at ${documentationUrl}.`,
    `Show that events arrive: ${PROGRAM} events --app ${name} --json.`,
  ];
  return [
    `Set up Inlet so that it receives the webhooks of ${title}.`,
    ...steps.map((step, index) => `${index + 1}. ${step}`),
  ].join("\n");
}

const credentials = (connection: Preset["streams"][number]["connection"]): readonly string[] => {
  if (connection === null) return [];
  const isToken = connection.kinds.some((kind) => kind === "bearer" || kind === "basic");
  return isToken ? ["--token", "@token.txt"] : ["--connection", "con_1"];
};

function exampleParams(schema: Readonly<Record<string, unknown>>): readonly string[] {
  const properties = (schema.properties ?? {}) as Readonly<
    Record<string, { readonly examples?: readonly unknown[] }>
  >;
  const required = (schema.required ?? []) as readonly string[];
  return required.map((name) => `${name}=${properties[name]?.examples?.[0] ?? "value"}`);
}
