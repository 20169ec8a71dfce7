import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useList } from "../../api/use-load.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { ShownOnce } from "../../kit/feedback/shown-once.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Field, Select, TextArea, TextField } from "../../kit/form/field.tsx";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { Code } from "../../kit/text/code.tsx";
import { BatchInput, NO_BATCH, toBatch } from "./batch-input.tsx";
import { PlaceInput } from "./place.tsx";

interface Props {
  readonly appId: string;
  readonly onClose: () => void;
  readonly onMade: (subscriptionId: string) => void;
}

const WHEN_EXAMPLE = '{"properties": {"data": {"properties": {"total": {"minimum": 10}}}}}';

/** Values of the handler's `ordered`, as values of a form field. */
const ORDERINGS = [
  { value: "false", label: "send events as fast as possible" },
  { value: "key", label: "keep the order of each partitionkey" },
  { value: "true", label: "keep the order of each topic" },
];

/** Parses JSON. Returns an invalid text unchanged, so that the API rejects it instead of subscribing to all events. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function Subscribe({ appId, onClose, onMade }: Props) {
  const channels = useList("/apps/{appId}/channels", { path: { appId }, query: { limit: 200 } });
  const [eventUid, setEventUid] = useState("*");
  const [startAt, setStartAt] = useState("now");
  const [url, setUrl] = useState("");
  const [ordered, setOrdered] = useState("false");
  const [batch, setBatch] = useState(NO_BATCH);
  const [made, setMade] = useState<Schemas["Subscribed"]>();
  const [filter, setFilter] = useState("");
  const when = filter === "" ? {} : { when: parseJson(filter) };
  const order = ordered === "key" ? ordered : ordered === "true";
  const handler = url === "" ? {} : { handler: { url, ordered: order, ...toBatch(batch) }, ...when };
  const call = {
    method: "POST",
    path: `/apps/${appId}/events/subscribe`,
    body: { eventUid, startAt, ...handler },
  };
  const action = useAction(async () => {
    const subscription = await send<Schemas["Subscribed"]>(call.method, call.path, call);
    onMade(subscription.id);
    if (subscription.handler?.secret) setMade(subscription);
    else onClose();
  });
  if (made?.handler?.secret)
    return (
      <ShownOnce title="Subscribed" onClose={onClose}>
        <p>Your handler verifies signatures with this secret (Standard Webhooks). It is shown only once.</p>
        <Code text={made.handler.secret} label="secret" wrap />
      </ShownOnce>
    );
  return (
    <Dialog title="Subscribe" onClose={onClose}>
      <Form onSubmit={action.run}>
        <WhenLoaded loaded={channels} lines={2}>
          {({ rows }) => (
            <Field label="Events">
              <select value={eventUid} onChange={(event) => setEventUid(event.currentTarget.value)}>
                <option value="*">all events of the app</option>
                {rows.map(({ uid, events }) => (
                  <optgroup key={uid} label={uid}>
                    <option value={`${uid}:*`}>all events of {uid}</option>
                    {events.map(({ type }) => (
                      <option key={type} value={`${uid}:${type}`}>
                        {uid}: {type}
                      </option>
                    ))}
                  </optgroup>
                ))}
              </select>
            </Field>
          )}
        </WhenLoaded>
        <PlaceInput value={startAt} onChange={setStartAt} />
        <TextField
          label="Send each event to"
          isOptional
          help="Inlet sends each event to this address in a signed POST request, and retries until it is accepted. Leave it empty to read the events with any Redis client or the library."
          type="url"
          value={url}
          placeholder="https://"
          onChange={setUrl}
        />
        {url !== "" && (
          <>
            <Select
              label="Order"
              help="In order, an event that your handler rejects delays the later ones for about an hour at most. The keyPath of a definition sets the partitionkey of its events."
              value={ordered}
              options={ORDERINGS}
              onChange={setOrdered}
            />
            <BatchInput values={batch} onChange={setBatch} />
            <TextArea
              label="Only events that match"
              isOptional
              help="A JSON Schema over the event. Other events are acknowledged without a request."
              rows={4}
              value={filter}
              placeholder={WHEN_EXAMPLE}
              onChange={setFilter}
            />
          </>
        )}
        <FormFoot action={action} call={call} verb="Subscribe" onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
