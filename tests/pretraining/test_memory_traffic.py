"""Counting the memory traffic of a compiled program."""

from bert_tf.pretraining import memory_traffic

# 8 MB arrays; S(1) is the fast memory on the chip.
PROGRAM = """HloModule step

%fused (p: f32[2,1000000]) -> f32[2,1000000] {
  %p = f32[2,1000000]{1,0} parameter(0)
}

ENTRY %main (a: f32[2,1000000], b: bf16[4000000]) -> f32[2,1000000] {
  %a = f32[2,1000000]{1,0:T(8,128)} parameter(0)
  %b = bf16[4000000]{0:T(1024)} parameter(1)
  %seen = bf16[2,2000000]{1,0:T(8,128)} bitcast(%b)
  %near = f32[2,1000000]{1,0:T(8,128)S(1)} fusion(%a, %seen), kind=kLoop, calls=%fused
  %start = ((f32[2,1000000]{1,0}), f32[1,1000000]{1,0:S(1)}, s32[]{:S(2)}) slice-start(%a), slice={[0:1]}
  %done = f32[1,1000000]{1,0:S(1)} slice-done(%start)
  %out = (f32[2,1000000]{1,0}, f32[2,1000000]{1,0S(1)}, u32[]{:S(2)}) copy-start(%near)
  ROOT %end = f32[2,1000000]{1,0:T(8,128)} copy-done(%out)
}
"""  # noqa: E501


def test_only_what_goes_through_the_chips_memory_counts():
    # The fusion reads both arguments (16 MB) and writes to the chip's fast memory. The
    # slice reads 4 of 8 MB. The copy writes 8 MB.
    assert memory_traffic.memory_bytes(PROGRAM) == 16_000_000 + 4_000_000 + 8_000_000
