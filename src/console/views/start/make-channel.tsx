import { useState } from "preact/hooks";
import { composePoll, composeWebhook, findOrigin } from "../../../channels/compose-channel.ts";
import type { Schemas } from "../../api/client.ts";
import { Select, TextArea, toLines } from "../../kit/form/field.tsx";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { useConnectionChoice } from "./connection-choice.tsx";
import { isRegistration, NO_CHOICE, ProviderFields } from "./provider-fields.tsx";
import { sampleType } from "./sample-type.ts";
import { ChannelName, type MadeChannel, useCreation } from "./use-creation.tsx";
import { type Way, WayChoice } from "./ways.tsx";

interface Props {
  readonly preset: Schemas["Preset"];
  readonly onBack: () => void;
  /** `isPolled`: whether the channel polls the provider, which then needs no address. */
  readonly onMade: (made: MadeChannel, isPolled: boolean) => void;
}

/** Choice in place of a registration: the user sets up the webhook at the provider. */
const BY_HAND = "";

/** Second step for a provider: its types, or the list that Inlet polls. */
export function MakeChannel({ preset, onBack, onMade }: Props) {
  const { title, streams } = preset;
  const [way, setWay] = useState<Way>("webhook");
  const [uid, setUid] = useState(preset.preset);
  const [types, setTypes] = useState(() => sampleType(preset) ?? "received");
  // Name of a registration target or of a list.
  const [arrival, setArrival] = useState(BY_HAND);
  const [choice, setChoice] = useState(NO_CHOICE);
  const registrations = preset.registrations.filter(
    ({ connection }) => connection === null || hasPermission("connections.read"),
  );
  const stream = way === "poll" ? streams.find(({ name }) => name === arrival) : undefined;
  const target = way === "webhook" ? registrations.find((one) => one.target === arrival) : undefined;
  const called = stream ?? target;
  const wanted = toLines(types);
  const channel = stream
    ? composePoll(uid, stream.title, { preset: preset.preset, stream: stream.name }, choice.params)
    : composeWebhook(uid, title, preset.preset, wanted);
  const settings = stream
    ? { connectionId: choice.connectionId }
    : { registration: target && { target: target.target, ...choice } };
  const { call, action, appField } = useCreation(channel, settings, (made) =>
    onMade(made, stream !== undefined),
  );
  const connection = useConnectionChoice({
    required: called ? called.connection : null,
    isOptional: called === undefined || !isRegistration(called),
    title,
    origin: called && findOrigin(called, choice.params, choice.baseUrl),
    value: choice.connectionId,
    onChange: (connectionId) => setChoice({ ...choice, connectionId }),
  });
  const arrive = (next: Way, name: string): void => {
    setWay(next);
    setArrival(name);
    setUid(next === "poll" ? name : preset.preset);
    setChoice(NO_CHOICE);
  };
  return (
    <>
      {streams.length > 0 && (
        <WayChoice
          offered={["webhook", "poll"]}
          chosen={way}
          onChoose={(next) => arrive(next, next === "poll" ? (streams[0]?.name ?? "") : BY_HAND)}
        />
      )}
      <Form class="card make-channel" onSubmit={action.run}>
        <h2>{title}</h2>
        <p class="lead">
          <UntrustedText>{preset.description}</UntrustedText>
        </p>
        {(way === "poll" || registrations.length > 0) && (
          <Select
            label="How events arrive"
            value={arrival}
            options={
              way === "poll"
                ? streams.map(({ name, title: list }) => ({ value: name, label: `Inlet polls: ${list}` }))
                : [
                    { value: BY_HAND, label: `You add a webhook at ${title}` },
                    ...registrations.map((one) => ({
                      value: one.target,
                      label: `Register at ${title}${registrations.length > 1 ? `: ${one.title}` : ""}`,
                    })),
                  ]
            }
            onChange={(value) => arrive(way, value)}
          />
        )}
        {called && (
          <ProviderFields
            key={`${way} ${arrival}`}
            api={called}
            choice={choice}
            onChange={setChoice}
            connection={connection.field}
            details={(action.error?.details ?? []).map(({ path, message }) => ({
              path: path.replace(/^.*\bparams\b\.?/, ""),
              message,
            }))}
          />
        )}
        {!stream && (
          <TextArea
            label="Event types, one per line"
            help={
              <>
                Use the type names of {title}. Other types go to quarantine, and you can add types later.
                {target && " Without types, the channel accepts all."}
              </>
            }
            rows={3}
            required={!target}
            value={types}
            onChange={setTypes}
          />
        )}
        <ChannelName value={uid} onChange={setUid} />
        {appField}
        <FormFoot action={action} call={call} verb="Create the channel" onCancel={onBack} cancel="Back" />
      </Form>
      {connection.dialog}
    </>
  );
}
