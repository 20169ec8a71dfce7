import { useState } from "preact/hooks";
import {
  type ApiCall,
  composeStream,
  composeUrlPoll,
  composeWebhook,
} from "../../../channels/compose-channel.ts";
import { Select, TextArea, TextField, toLines } from "../../kit/form/field.tsx";
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
            <Select
              label="How the sender signs"
              help="The settings of the channel offer further schemes."
              value={schemeName}
              options={Object.entries(SCHEMES).map(([value, { title }]) => ({ value, label: title }))}
              onChange={(value) => {
                const next = value as SchemeName;
                setScheme(next);
                if (isGenerated(secret)) setSecret(generateSecret(findScheme(next).secretPrefix));
              }}
            />
            {scheme.header !== undefined && (
              <TextField label="Header" placeholder={scheme.header} value={header} onChange={setHeader} />
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
            <TextArea
              label="Sample body"
              isOptional
              help="Paste a delivery of the sender to choose its type path."
              rows={5}
              placeholder='{"type": "order.created", …}'
              value={sample}
              onChange={setSample}
            />
          </>
        ) : (
          <TextField
            label="URL"
            type="url"
            required
            placeholder="https://api.example.com/events"
            value={url}
            onChange={setUrl}
          />
        )}
        {way === "poll" && (
          <>
            <TextField
              label="Path of the items"
              help="$ if the response is the list, or for example $.data."
              required
              value={poll.itemsPath}
              onChange={(itemsPath) => setPoll({ ...poll, itemsPath })}
            />
            <TextField
              label="Path of the id in an item"
              help="If it is empty, a changed item is a new one."
              value={poll.itemId}
              onChange={(itemId) => setPoll({ ...poll, itemId })}
            />
            <TextField
              label="Seconds between polls"
              type="number"
              required
              min={5}
              value={poll.intervalSeconds}
              onChange={(text) => setPoll({ ...poll, intervalSeconds: Number.parseInt(text, 10) })}
            />
          </>
        )}
        {way !== "webhook" && connection.field}
        <TextField
          label="Type path"
          isOptional
          help={
            found === undefined ? (
              "Path of the event type. If it is empty, every delivery has the type below."
            ) : (
              <>
                In the sample: <UntrustedText max={120}>{found}</UntrustedText>
              </>
            )
          }
          list="type-paths"
          placeholder="$.type"
          value={typePath}
          onChange={setTypedPath}
        />
        <datalist id="type-paths">
          {candidates.map(({ path, value }) => (
            <option key={path} value={path}>
              {value}
            </option>
          ))}
        </datalist>
        <TextArea
          label="Event types, one per line"
          help="Other types go to quarantine, and you can add types later."
          rows={2}
          required
          value={types}
          onChange={setTypedTypes}
        />
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
