import { useState } from "preact/hooks";
import { api, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { ShownOnce } from "../../kit/feedback/shown-once.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
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

/** Value of the handler's `ordered`, as the value of a form field. */
type Ordering = "false" | "true" | "key";

/** Parses JSON. Returns an invalid text unchanged, so that the API rejects it instead of subscribing to all events. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function Subscribe({ appId, onClose, onMade }: Props) {
  const channels = useLoad(
    (signal) => api.list("/apps/{appId}/channels", { path: { appId }, query: { limit: 200 }, signal }),
    [appId],
  );
  const [eventUid, setEventUid] = useState("*");
  const [startAt, setStartAt] = useState("now");
  const [url, setUrl] = useState("");
  const [ordered, setOrdered] = useState<Ordering>("false");
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
  if (made?.handler?.secret) return <Secret secret={made.handler.secret} onClose={onClose} />;
  return (
    <Dialog title="Subscribe" onClose={onClose}>
      <Form onSubmit={action.run}>
        <WhenLoaded loaded={channels} lines={2}>
          {({ rows }) => (
            <label class="field">
              <span class="field-name">Events</span>
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
            </label>
          )}
        </WhenLoaded>
        <PlaceInput value={startAt} onChange={setStartAt} />
        <label class="field">
          <span class="field-name">
            Send each event to <span class="faint">optional</span>
          </span>
          <input
            type="url"
            value={url}
            placeholder="https://"
            spellcheck={false}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
          <span class="field-help">
            Inlet sends each event to this address in a signed POST request, and retries until it is accepted.
            Leave it empty to read the events with any Redis client or the library.
          </span>
        </label>
        {url !== "" && (
          <label class="field">
            <span class="field-name">Order</span>
            <select value={ordered} onChange={(event) => setOrdered(event.currentTarget.value as Ordering)}>
              <option value="false">send events as fast as possible</option>
              <option value="key">keep the order of each partitionkey</option>
              <option value="true">keep the order of each topic</option>
            </select>
            <span class="field-help">
              In order, an event that your handler rejects delays the later ones for about an hour at most.
              The keyPath of a definition sets the partitionkey of its events.
            </span>
          </label>
        )}
        {url !== "" && <BatchInput values={batch} onChange={setBatch} />}
        {url !== "" && (
          <label class="field">
            <span class="field-name">
              Only events that match <span class="faint">optional</span>
            </span>
            <textarea
              rows={4}
              value={filter}
              placeholder={WHEN_EXAMPLE}
              spellcheck={false}
              onInput={(event) => setFilter(event.currentTarget.value)}
            />
            <span class="field-help">
              A JSON Schema over the event. Other events are acknowledged without a request.
            </span>
          </label>
        )}
        <FormFoot action={action} call={call} verb="Subscribe" onCancel={onClose} />
      </Form>
    </Dialog>
  );
}

const Secret = ({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) => (
  <ShownOnce title="Subscribed" onClose={onClose}>
    <p>Your handler verifies signatures with this secret (Standard Webhooks). It is shown only once.</p>
    <Code text={secret} label="secret" wrap />
  </ShownOnce>
);
