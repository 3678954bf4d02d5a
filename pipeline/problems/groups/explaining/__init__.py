"""What a learned controller does otherwise than shares by demand."""
