import type { Schemas } from "../../api/client.ts";
import type { PanelSpec } from "../../kit/failures/failure-panel.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { Headers } from "../../kit/text/headers.tsx";
import { formatDuration } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import "./dead-letters.css";

type Letter = Schemas["DeadLetter"];

export const LETTER_PANEL: PanelSpec<Letter, unknown> = {
  one: "dead letter",
  title: "Dead letter",
  permission: "apps.write",
  reason: ({ reason, attempts }) => (
    <div class="note warn">
      <p>
        <UntrustedText>{reason}</UntrustedText>
      </p>
      <p class="soft">
        The handler rejected it in {attempts.length} {attempts.length === 1 ? "attempt" : "attempts"}. Fix the
        handler, then send it again.
      </p>
    </div>
  ),
  redrives: () => [{ verb: "Send again", body: {} }],
  resultOf: () => ({ isGone: true, text: "Sending to the handler again" }),
  removal:
    "The handler will not receive these events again. They stay on their topics until retention removes them.",
  facts: (letter) => ({
    "Dead letter": <Copyable text={letter.id} what="dead letter id" />,
    Type: letter.type,
    Entry: <Copyable text={letter.entryId} what="entry id" />,
    Topic: letter.topic,
    "Given up": <Time at={letter.createdAt} as="full" />,
  }),
  more({ id, attempts, event: { data, data_base64: base64, ...attributes } }) {
    const content = data ?? (base64 === undefined ? undefined : decodeBase64(base64));
    return (
      <>
        <Section title={`Attempts (${attempts.length})`}>
          <ol class="attempts">
            {attempts.map(({ at, status, code, durationMs }, index) => (
              <li key={index}>
                <Badge tone="bad">{status ?? code}</Badge>
                <Time at={at} />
                <span class="faint">{formatDuration(durationMs)}</span>
              </li>
            ))}
          </ol>
        </Section>
        {content !== undefined && (
          <Section title="Data">
            <Payload content={content} label="the data" fileName={`${id}.txt`} />
          </Section>
        )}
        <Section title="Attributes">
          <Headers values={attributes} label="Attributes" />
        </Section>
      </>
    );
  },
};
