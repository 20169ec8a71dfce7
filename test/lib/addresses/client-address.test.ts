import { describe, expect, it } from "vitest";
import { createClientAddressOf } from "../../../src/lib/addresses/client-address.ts";

const addressOf = (trusted: readonly string[], peer: string | undefined, forwardedFor?: string) =>
  createClientAddressOf(trusted)(peer, forwardedFor).address;

const PROXIES = ["10.0.0.0/8", "fd00::/8"];

describe("createClientAddressOf", () => {
  it("returns the peer's address if no proxy is trusted, and ignores X-Forwarded-For", () => {
    expect(addressOf([], "192.0.2.1", "198.51.100.1")).toBe("192.0.2.1");
    expect(addressOf([], undefined)).toBe("unknown");
    expect(addressOf([], "::ffff:192.0.2.1")).toBe("192.0.2.1");
    expect(addressOf([], "2001:0db8::0001")).toBe("2001:db8::1");
  });

  it("returns the rightmost address of X-Forwarded-For that is not a trusted proxy", () => {
    expect(addressOf(PROXIES, "10.0.0.1", "203.0.113.9, 198.51.100.1")).toBe("198.51.100.1");
    expect(addressOf(PROXIES, "10.0.0.1", "203.0.113.9,198.51.100.1, 10.2.3.4,10.9.9.9")).toBe(
      "198.51.100.1",
    );
    expect(addressOf(PROXIES, "::ffff:10.0.0.1", "198.51.100.1")).toBe("198.51.100.1");
    expect(addressOf(PROXIES, "fd00::1", "2001:db8::7, fd00::2")).toBe("2001:db8::7");
  });

  it("ignores X-Forwarded-For if the peer is not a trusted proxy", () => {
    expect(addressOf(PROXIES, "192.0.2.1", "198.51.100.1")).toBe("192.0.2.1");
  });

  it("returns the last trusted proxy in the chain if no untrusted, valid address precedes that proxy", () => {
    expect(addressOf(PROXIES, "10.0.0.1", "10.0.0.3, 10.0.0.2")).toBe("10.0.0.3");
    expect(addressOf(PROXIES, "10.0.0.1")).toBe("10.0.0.1");
    for (const entry of ["unknown", "", "_hidden", "1.2.3", "0x7f.1", "198.51.100.1.example"]) {
      expect(addressOf(PROXIES, "10.0.0.1", `198.51.100.1, ${entry}, 10.0.0.2`)).toBe("10.0.0.2");
    }
  });

  it("reports only the first untrusted peer that sends X-Forwarded-For", () => {
    for (const trusted of [[], PROXIES]) {
      const reported: string[] = [];
      const clientOf = createClientAddressOf(trusted, (peer) => reported.push(peer));
      clientOf("192.0.2.1", undefined);
      if (trusted.length > 0) clientOf("10.0.0.1", "198.51.100.1, 192.0.2.9");
      expect(reported).toEqual([]);
      for (const peer of ["192.0.2.2", "192.0.2.2", "192.0.2.3"]) clientOf(peer, "198.51.100.1");
      expect(reported).toEqual(["192.0.2.2"]);
    }
  });

  it("accepts addresses with a port and in brackets", () => {
    expect(addressOf(PROXIES, "10.0.0.1", "198.51.100.1:1234")).toBe("198.51.100.1");
    expect(addressOf(PROXIES, "10.0.0.1", "[2001:db8::7]:443")).toBe("2001:db8::7");
    expect(addressOf(PROXIES, "10.0.0.1", "[2001:db8::7]")).toBe("2001:db8::7");
  });

  it("handles an X-Forwarded-For header with 5,000 addresses", () => {
    const chain = Array.from({ length: 5_000 }, () => "10.0.0.2").join(",");
    expect(addressOf(PROXIES, "10.0.0.1", chain)).toBe("10.0.0.2");
  });

  it("returns the /64 network in addition to an IPv6 address", () => {
    const clientOf = createClientAddressOf([]);
    expect(clientOf("2001:db8:0:1:aaaa::1", undefined).network).toBe("2001:db8:0:1::/64");
    expect(clientOf("2001:db8:0:1::2", undefined).network).toBe("2001:db8:0:1::/64");
    expect(clientOf("2001:db8:0:2::2", undefined).network).not.toBe("2001:db8:0:1::/64");
    expect(clientOf("192.0.2.1", undefined).network).toBe("192.0.2.1");
  });
});
