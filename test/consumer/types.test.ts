import { describe, expect, expectTypeOf, it } from "vitest";
import {
  type ConsumedEvent,
  type ConsumerOptions,
  createConsumer,
  type Delivery,
  type EventOf,
  type EventTypes,
  type Handler,
} from "../../src/consumer/consumer.ts";

interface Events extends EventTypes {
  created: { id: string };
  deleted: { id: string; reason: string };
  other: unknown;
}

it('the option `ordered` is true, false or "key", in its type and at run time', () => {
  const options = { redis: "redis://127.0.0.1", subscription: "sub_1" };
  expectTypeOf<ConsumerOptions["ordered"]>().toEqualTypeOf<boolean | "key" | undefined>();
  for (const ordered of [true, false, "key"] as const)
    expect(createConsumer({ ...options, ordered })).toHaveProperty("run");
  // @ts-expect-error topics are ordered with true
  expect(() => createConsumer({ ...options, ordered: "topic" })).toThrow('true, false or "key"');
});

describe("the types of a consumer", () => {
  it("narrow data by the event type if the type argument has the key *", () => {
    const consumer = createConsumer<Events>({ redis: "redis://127.0.0.1", subscription: "sub_1" });
    expectTypeOf(consumer.run).parameter(0).toEqualTypeOf<Handler<Events>>();
    const handle: Handler<Events> = (event) => {
      expectTypeOf(event.type).toEqualTypeOf<"created" | "deleted" | "other">();
      if (event.type === "deleted") expectTypeOf(event.data).toEqualTypeOf<Events["deleted"] | undefined>();
      switch (event.type) {
        case "created":
          expectTypeOf(event.data).toEqualTypeOf<Events["created"] | undefined>();
          // @ts-expect-error only deleted events have a reason
          event.data?.reason;
          break;
        case "other":
          expectTypeOf(event.data).toEqualTypeOf<unknown>();
          break;
      }
      // @ts-expect-error no event has this type
      return event.type === "moved" ? undefined : undefined;
    };
    expect(handle).toBeTypeOf("function");
    expectTypeOf<Delivery<Events>["event"]["type"]>().toEqualTypeOf<"created" | "deleted" | "other">();
  });

  it("are those of ConsumedEvent if the type argument is the type of data, or if the list names no type", () => {
    interface Payload {
      readonly type: "a" | "b";
      readonly data: string;
    }
    expectTypeOf<EventOf<Payload>>().toEqualTypeOf<ConsumedEvent<Payload>>();
    expectTypeOf<EventOf<string | number>>().toEqualTypeOf<ConsumedEvent<string | number>>();
    expectTypeOf<EventOf>().toEqualTypeOf<ConsumedEvent>();
    expectTypeOf<EventOf["partitionkey"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<EventOf<EventTypes>>().toEqualTypeOf<ConsumedEvent>();
    expectTypeOf(createConsumer({ redis: "r", subscription: "s" }).run)
      .parameter(0)
      .toEqualTypeOf<Handler>();
  });
});
