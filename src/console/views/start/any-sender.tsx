import { useState } from "preact/hooks";
import {
  type ApiCall,
  composeStream,
  composeUrlPoll,
  composeWebhook,
} from "../../../channels/compose-channel.ts";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { useConnectionChoice } from "./connection-choice.tsx";
import { guessTypePath, listTypes, sampleType } from "./sample-type.ts";
import { findScheme, SCHEMES, type SchemeName } from "./schemes.ts";
import { generateSecret, isGenerated, SecretField } from "./secret-field.tsx";
import { ChannelName, type MadeChannel, useCreation } from "./use-creation.tsx";
import { WAYS, type Way, WayChoice } from "./ways.tsx";

interface Props {
  readonly way: Way;
  readonly onWay: (way: Way) => void;
  readonly onBack: () => void;
  /** `secret` is a generated one, which the user gives to the sender. */
  readonly onMade: (made: MadeChannel, secret: string | undefined) => void;
}

const UIDS: Readonly<Record<Way, string>> = { webhook: "hooks", poll: "poll", stream: "stream" };
const EVERY: readonly Way[] = ["webhook", "poll", "stream"];

const toLines = (text: string): readonly string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

/** Second step for a sender without a preset: its scheme, a sample of its body, and where the type is. */
export function AnySender({ way, onWay, onBack, onMade }: Props) {
  const [uid, setUid] = useState(UIDS[way]);
  const [schemeName, setScheme] = useState<SchemeName>("standardWebhooks");
  const scheme = findScheme(schemeName);
  const [header, setHeader] = useState("");
  const [secret, setSecret] = useState(() => generateSecret("whsec_"));
  const [sample, setSample] = useState("");
  const [typedPath, setTypedPath] = useState<string>();
  const [typedTypes, setTypedTypes] = useState<string>();
  const [url, setUrl] = useState("");
  const [poll, setPoll] = useState({ itemsPath: "$", itemId: "$.id", intervalSeconds: 60 });
  const [connectionId, setConnectionId] = useState<string>();

  const candidates = listTypes(sample);
  const typePath = typedPath ?? (way === "webhook" ? guessTypePath(candidates) : undefined) ?? "";
  const found = sampleType({ sample: { headers: {}, query: {}, body: sample }, typePath });
  const types = typedTypes ?? found ?? "received";
  const events = toLines(types).map((type) => ({ type, ...(typePath !== "" && { typePath }) }));
  const needsSecret = way === "webhook" && scheme.secretPrefix !== undefined;
  const channel = {
    webhook: () => ({
      ...composeWebhook(uid, "Webhooks", undefined, []),
      config: { verification: scheme.compose(header || (scheme.header ?? "")) },
      events,
    }),
    poll: () => composeUrlPoll(uid, url, { ...poll, itemId: poll.itemId || undefined }, events),
    stream: () => composeStream(uid, url, events),
  }[way]();
  const settings = needsSecret
    ? { secrets: [{ value: secret.value }] }
    : { connectionId: way === "webhook" ? undefined : connectionId };
  const { call, action, appField } = useCreation(channel, settings, (made) =>
    onMade(made, needsSecret && isGenerated(secret) ? secret.value : undefined),
  );
  const connection = useConnectionChoice({
    required: undefined,
    isOptional: true,
    title: channel.title,
    origin: URL.canParse(url) ? new URL(url).origin : undefined,
    value: connectionId,
    onChange: setConnectionId,
  });
  return (
    <>
      <WayChoice
        offered={EVERY}
        chosen={way}
        onChoose={(next) => {
          if (uid === UIDS[way]) setUid(UIDS[next]);
          onWay(next);
        }}
      />
      <Form class="card make-channel" onSubmit={action.run}>
        <h2>{WAYS[way].title}</h2>
        {way === "webhook" ? (
          <>
            <label class="field">
              <span class="field-name">How the sender signs</span>
              <select
                value={schemeName}
                onChange={({ currentTarget: { value } }) => {
                  const next = value as SchemeName;
                  setScheme(next);
                  if (isGenerated(secret)) setSecret(generateSecret(findScheme(next).secretPrefix));
                }}
              >
                {Object.entries(SCHEMES).map(([name, { title }]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
              <span class="field-help">The settings of the channel offer further schemes.</span>
            </label>
            {scheme.header !== undefined && (
              <label class="field">
                <span class="field-name">Header</span>
                <input
                  type="text"
                  placeholder={scheme.header}
                  value={header}
                  onInput={(event) => setHeader(event.currentTarget.value)}
                />
              </label>
            )}
            {needsSecret && (
              <SecretField
                label="Secret"
                hint="Give this secret to the sender, or enter the one that it shows."
                secret={secret}
                generate={() => generateSecret(scheme.secretPrefix)}
                onChange={setSecret}
              />
            )}
            <label class="field">
              <span class="field-name">
                Sample body <span class="faint">optional</span>
              </span>
              <textarea
                rows={5}
                spellcheck={false}
                placeholder='{"type": "order.created", …}'
                value={sample}
                onInput={(event) => setSample(event.currentTarget.value)}
              />
              <span class="field-help">Paste a delivery of the sender to choose its type path.</span>
            </label>
          </>
        ) : (
          <label class="field">
            <span class="field-name">URL</span>
            <input
              type="url"
              required
              placeholder="https://api.example.com/events"
              value={url}
              onInput={(event) => setUrl(event.currentTarget.value)}
            />
          </label>
        )}
        {way === "poll" && (
          <>
            <label class="field">
              <span class="field-name">Path of the items</span>
              <input
                type="text"
                required
                value={poll.itemsPath}
                onInput={(event) => setPoll({ ...poll, itemsPath: event.currentTarget.value })}
              />
              <span class="field-help">$ if the response is the list, or for example $.data.</span>
            </label>
            <label class="field">
              <span class="field-name">Path of the id in an item</span>
              <input
                type="text"
                value={poll.itemId}
                onInput={(event) => setPoll({ ...poll, itemId: event.currentTarget.value })}
              />
              <span class="field-help">If it is empty, a changed item is a new one.</span>
            </label>
            <label class="field">
              <span class="field-name">Seconds between polls</span>
              <input
                type="number"
                required
                min={1}
                value={poll.intervalSeconds}
                onInput={(event) => setPoll({ ...poll, intervalSeconds: event.currentTarget.valueAsNumber })}
              />
            </label>
          </>
        )}
        {way !== "webhook" && connection.field}
        <label class="field">
          <span class="field-name">
            Type path <span class="faint">optional</span>
          </span>
          <input
            type="text"
            list="type-paths"
            spellcheck={false}
            placeholder="$.type"
            value={typePath}
            onInput={(event) => setTypedPath(event.currentTarget.value)}
          />
          <datalist id="type-paths">
            {candidates.map(({ path, value }) => (
              <option key={path} value={path}>
                {value}
              </option>
            ))}
          </datalist>
          <span class="field-help">
            {found === undefined ? (
              "Path of the event type. If it is empty, every delivery has the type below."
            ) : (
              <>
                In the sample: <UntrustedText max={120}>{found}</UntrustedText>
              </>
            )}
          </span>
        </label>
        <label class="field">
          <span class="field-name">Event types, one per line</span>
          <textarea
            rows={2}
            required
            spellcheck={false}
            value={types}
            onInput={(event) => setTypedTypes(event.currentTarget.value)}
          />
          <span class="field-help">Other types go to quarantine, and you can add types later.</span>
        </label>
        <ChannelName value={uid} onChange={setUid} />
        {appField}
        <FormFoot
          action={action}
          call={hideSecret(call, needsSecret ? secret.value : "")}
          verb="Create the channel"
          onCancel={onBack}
          cancel="Back"
        />
      </Form>
      {connection.dialog}
    </>
  );
}

/** Removes the secret from a call that the page shows. */
const hideSecret = (call: ApiCall, secret: string): ApiCall =>
  secret === "" ? call : JSON.parse(JSON.stringify(call).replaceAll(JSON.stringify(secret), '"…"'));
