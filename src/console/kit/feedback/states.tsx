import type { ComponentChildren } from "preact";
import type { ApiError } from "../../api/api-error.ts";
import type { Loaded } from "../../api/use-load.ts";
import { Button } from "../layout/button.tsx";
import { CopyButton } from "../text/copy.tsx";
import { Time } from "../text/time.tsx";
import { UntrustedCode, UntrustedText } from "../text/untrusted-text.tsx";

interface EmptyProps {
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** Placeholder for an empty list. It explains the list and the next step for the user. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

interface ErrorNoteProps {
  readonly error: ApiError;
  readonly onRetry?: () => void;
}

/** Shows an error with its code and its request id, which identifies the request in the gateway's log. */
export function ErrorNote({ error, onRetry }: ErrorNoteProps) {
  const { message, code, requestId, details } = error;
  return (
    <div class="note bad" role="alert">
      <p>
        <UntrustedText>{message}</UntrustedText>
      </p>
      {details.length > 0 && (
        <ul>
          {details.map(({ path, message: detail }) => (
            <li key={path + detail}>
              {path !== "" && (
                <>
                  <UntrustedCode>{path}</UntrustedCode>{" "}
                </>
              )}
              <UntrustedText>{detail}</UntrustedText>
            </li>
          ))}
        </ul>
      )}
      <p class="row faint">
        <span>
          <code>{code}</code>
          {requestId !== undefined && <> · request {requestId}</>}
        </span>
        {requestId !== undefined && <CopyButton text={requestId} what="request id" />}
        {onRetry && <Button onClick={onRetry}>Try again</Button>}
      </p>
    </div>
  );
}

interface LastErrorProps {
  readonly error: { readonly code: string; readonly message: string; readonly at: string };
  /** Whether the failure is permanent, or needs the user. */
  readonly isBad: boolean;
}

/** Shows the last failure of work in the background. */
export const LastError = ({ error: { code, message, at }, isBad }: LastErrorProps) => (
  <div class={isBad ? "note bad" : "note warn"}>
    <p>
      <UntrustedText>{message}</UntrustedText>
    </p>
    <p class="faint">
      <code>{code}</code> · <Time at={at} as="ago" />
    </p>
  </div>
);

interface LoadingProps {
  readonly lines?: number | undefined;
  /** Space that the content takes, so that the page does not jump when it appears. */
  readonly as?: "text" | "rows" | "tiles" | "chart" | undefined;
}

/** Placeholder for content that is loading. */
export function Loading({ lines = 5, as = "text" }: LoadingProps) {
  return (
    <div class={`skeleton of-${as}`} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

interface ResourceProps<T> extends LoadingProps {
  readonly loaded: Loaded<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows data, or while there is none a placeholder or the error. During a reload, the old data stays visible. */
export function WhenLoaded<T>({ loaded, lines, as, children }: ResourceProps<T>) {
  const { data, error, reload } = loaded;
  if (data === undefined) {
    if (error) return <ErrorNote error={error} onRetry={reload} />;
    return <Loading lines={lines} as={as} />;
  }
  return (
    <>
      {error && <ErrorNote error={error} onRetry={reload} />}
      {children(data)}
    </>
  );
}
