import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { ErrorNote, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Badge, Facts, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { Headers } from "../../kit/text/headers.tsx";
import { formatDuration } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { type Place, pathOf } from "./letters.ts";

type Letter = Schemas["DeadLetter"];

interface Props {
  readonly place: Place;
  readonly letterId: string;
  readonly onClose: () => void;
  /** Called when the dead letter was deleted or sent again. */
  readonly onGone: () => void;
}

export function LetterPanel({ place, letterId, onClose, onGone }: Props) {
  const loaded = useLoad<Letter>(
    (signal) =>
      api.get("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/{deadLetterId}", {
        path: { ...place, deadLetterId: letterId },
        signal,
      }),
    [place.subscriptionId, letterId],
  );
  return (
    <DetailPanel title="Dead letter" onClose={onClose}>
      <WhenLoaded loaded={loaded} lines={8}>
        {(letter) => {
          const { data, data_base64: base64, ...attributes } = letter.event;
          return (
            <>
              <div class="note warn">
                <p>
                  <UntrustedText>{letter.reason}</UntrustedText>
                </p>
                <p class="soft">
                  The handler rejected it in {letter.attempts.length}{" "}
                  {letter.attempts.length === 1 ? "attempt" : "attempts"}. Fix the handler, then send it
                  again.
                </p>
              </div>
              {hasPermission("apps.write") && (
                <Actions place={place} letter={letter} onClose={onClose} onGone={onGone} />
              )}
              <Facts
                facts={{
                  "Dead letter": <Copyable text={letter.id} what="dead letter id" />,
                  Type: <UntrustedText>{letter.type}</UntrustedText>,
                  Entry: <Copyable text={letter.entryId} what="entry id" />,
                  Topic: <UntrustedText>{letter.topic}</UntrustedText>,
                  "Given up": <Time at={letter.createdAt} as="full" />,
                }}
              />
              <Section title={`Attempts (${letter.attempts.length})`}>
                <ol class="attempts">
                  {letter.attempts.map(({ at, status, code, durationMs }, index) => (
                    <li key={index}>
                      <Badge tone="bad">{status ?? code}</Badge>
                      <Time at={at} />
                      <span class="faint">{formatDuration(durationMs)}</span>
                    </li>
                  ))}
                </ol>
              </Section>
              {data !== undefined || base64 !== undefined ? (
                <Section title="Data">
                  <Payload
                    content={data ?? decodeBase64(base64 ?? "")}
                    label="the data"
                    fileName={`${letter.id}.txt`}
                  />
                </Section>
              ) : null}
              <Section title="Attributes">
                <Headers values={attributes} label="Attributes" />
              </Section>
            </>
          );
        }}
      </WhenLoaded>
    </DetailPanel>
  );
}

interface ActionsProps extends Omit<Props, "letterId"> {
  readonly letter: Letter;
}

function Actions({ place, letter, onClose, onGone }: ActionsProps) {
  const [isDeleting, setDeleting] = useState(false);
  const path = `${pathOf(place)}/${encodeURIComponent(letter.id)}`;
  const leave = (text: string): void => {
    toast(text);
    onClose();
    onGone();
  };
  const redrive = useAction(async () => {
    await api.post("/apps/{appId}/subscriptions/{subscriptionId}/dead-letters/{deadLetterId}/redrive", {
      path: { ...place, deadLetterId: letter.id },
      body: {},
    });
    leave("Sending to the handler again");
  });
  return (
    <div class="stack">
      <div class="row wrap">
        <Button look="primary" disabled={redrive.isRunning} onClick={() => void redrive.run()}>
          Send again
        </Button>
        <Button look="delete" onClick={() => setDeleting(true)}>
          Delete
        </Button>
      </div>
      {redrive.error && <ErrorNote error={redrive.error} />}
      <ApiCall
        label="API call to send it again"
        call={{ method: "POST", path: `${path}/redrive`, body: {} }}
      />
      {isDeleting && (
        <Confirm
          title="Delete this dead letter?"
          verb="Delete"
          danger
          call={{ method: "DELETE", path }}
          onDone={() => leave("Deleted")}
          onClose={() => setDeleting(false)}
        >
          <p>
            The handler will not receive this event again. The event stays on its topic until retention
            removes it.
          </p>
        </Confirm>
      )}
    </div>
  );
}
